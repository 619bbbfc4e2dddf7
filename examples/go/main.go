// Settings that a service reads at once and hears of when they change, without a polling interval and without
// a client library:
//
//	go run . [HTTP port]
package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"
)

// Setting is a key that is watched.
type Setting struct {
	address  string
	version  string
	position string
}

// Wait returns the value: at once the first time, and then when it is another one.
func (s *Setting) Wait() (string, error) {
	for {
		query := url.Values{"wait": {"true"}, "timeout": {"30"}}
		if s.position != "" {
			query.Set("since", s.position)
		}
		request, err := http.NewRequest("GET", s.address+"?"+query.Encode(), nil)
		if err != nil {
			return "", err
		}
		if s.version == "" {
			// Nothing is known yet: it is answered as it is now.
			request.URL.RawQuery = ""
		} else {
			request.Header.Set("If-None-Match", s.version)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return "", err
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil {
			return "", err
		}
		if position := answer.Header.Get("X-Position"); position != "" {
			s.position = position
		}
		switch answer.StatusCode {
		case http.StatusOK:
			s.version = answer.Header.Get("ETag")
			return string(body), nil
		case http.StatusNotModified:
			// Nothing has happened for half a minute: it waits again.
		default:
			return "", fmt.Errorf("%s: %s", answer.Status, body)
		}
	}
}

func put(address, value string) error {
	request, err := http.NewRequest("PUT", address, bytes.NewBufferString(value))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

func run(port string) error {
	address := "http://127.0.0.1:" + port + "/v1/keys/settings/rate"
	if err := put(address, "10"); err != nil {
		return err
	}
	setting := Setting{address: address}
	rate, err := setting.Wait()
	if err != nil {
		return err
	}
	fmt.Println("rate", rate)
	go func() {
		time.Sleep(100 * time.Millisecond)
		if err := put(address, "20"); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	rate, err = setting.Wait()
	if err != nil {
		return err
	}
	fmt.Println("rate", rate)
	return nil
}

func main() {
	port := "8379"
	if len(os.Args) > 1 {
		port = os.Args[1]
	}
	if err := run(port); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
