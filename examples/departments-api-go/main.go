// A REST API over a table of MariaDB, as it is commonly built: it keeps results in Redis, and asks the database
// for results that are not there. Dunlin's views are compared with the cost of this program (see README.md).
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"
)

// How long a result is kept.
const fresh = time.Minute

// The largest value that is stored.
const largestValue = 16 << 20

type department struct {
	Number string `json:"dept_no"`
	Name   string `json:"dept_name"`
}

// Either may be absent: the database is then asked each time, or never.
type service struct {
	database *sql.DB
	store    *redis.Client
}

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address to serve HTTP on")
	address := flag.String("redis", "", "address of Redis; without it the database is asked each time")
	database := flag.String("database", "", "where MariaDB is, as user:password@tcp(127.0.0.1:3306)/company; without it keys are stored and nothing else")
	connections := flag.Int("connections", 8, "most connections to the database")
	flag.Parse()

	var own service
	if *address != "" {
		own.store = redis.NewClient(&redis.Options{Addr: *address})
	}
	if *database != "" {
		opened, err := sql.Open("mysql", *database)
		if err == nil {
			opened.SetMaxOpenConns(*connections)
			opened.SetMaxIdleConns(*connections)
			err = fill(opened)
		}
		if err != nil {
			log.Fatal(err)
		}
		own.database = opened
	}
	server := &http.Server{Addr: *listen, Handler: own.routes(), ReadHeaderTimeout: 10 * time.Second}

	stopped, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() {
		<-stopped.Done()
		patience, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := server.Shutdown(patience); err != nil {
			log.Print(err)
		}
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
}

// Creates the table if it is missing.
func fill(database *sql.DB) error {
	for _, statement := range []string{
		"CREATE TABLE IF NOT EXISTS departments (dept_no VARCHAR(16) PRIMARY KEY, dept_name VARCHAR(40) NOT NULL)",
		"INSERT INTO departments (dept_no, dept_name) " +
			"WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 1000) " +
			"SELECT CONCAT('d', n), CONCAT('Department ', n) FROM numbers " +
			"WHERE NOT EXISTS (SELECT * FROM departments)",
	} {
		if _, err := database.Exec(statement); err != nil {
			return err
		}
	}
	return nil
}

func (own service) routes() http.Handler {
	mux := http.NewServeMux()
	if own.database != nil {
		mux.HandleFunc("/v1/views/departments", own.departments)
	}
	if own.store != nil {
		mux.HandleFunc("/v1/keys/", own.put)
	}
	return mux
}

func (own service) departments(answer http.ResponseWriter, request *http.Request) {
	rows, err := strconv.Atoi(request.URL.Query().Get("rows"))
	if request.Method != http.MethodGet || err != nil || rows < 1 || rows > 10000 {
		http.Error(answer, "GET ?rows=1 to 10000", http.StatusBadRequest)
		return
	}
	result, err := own.result(request.Context(), rows)
	if err != nil {
		http.Error(answer, err.Error(), http.StatusBadGateway)
		return
	}
	answer.Header().Set("Content-Type", "application/json")
	answer.Header().Set("Content-Length", strconv.Itoa(len(result)))
	if _, err := answer.Write(result); err != nil {
		log.Print(err)
	}
}

// Answers from Redis, or else from the database, and then keeps the result.
func (own service) result(context context.Context, rows int) ([]byte, error) {
	if own.store == nil {
		return own.selected(context, rows)
	}
	key := "departments:" + strconv.Itoa(rows)
	kept, err := own.store.Get(context, key).Bytes()
	if !errors.Is(err, redis.Nil) {
		return kept, err
	}
	result, err := own.selected(context, rows)
	if err != nil {
		return nil, err
	}
	return result, own.store.Set(context, key, result, fresh).Err()
}

func (own service) selected(context context.Context, rows int) ([]byte, error) {
	found, err := own.database.QueryContext(context,
		"SELECT dept_no, dept_name FROM departments ORDER BY dept_no LIMIT ?", rows)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	departments := make([]department, 0, rows)
	for found.Next() {
		var one department
		if err := found.Scan(&one.Number, &one.Name); err != nil {
			return nil, err
		}
		departments = append(departments, one)
	}
	if err := found.Err(); err != nil {
		return nil, err
	}
	return json.Marshal(departments)
}

func (own service) put(answer http.ResponseWriter, request *http.Request) {
	if request.Method != http.MethodPut {
		http.Error(answer, "keys are stored", http.StatusMethodNotAllowed)
		return
	}
	key := strings.TrimPrefix(request.URL.Path, "/v1/keys/")
	value, err := io.ReadAll(http.MaxBytesReader(answer, request.Body, largestValue))
	if err == nil {
		err = own.store.Set(request.Context(), key, value, 0).Err()
	}
	if err != nil {
		http.Error(answer, err.Error(), http.StatusBadGateway)
		return
	}
	answer.WriteHeader(http.StatusNoContent)
}
