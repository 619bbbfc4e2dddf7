// Says whether what clients have seen can be explained by one copy of the data: Porcupine looks for an order of
// all operations on a key in which each has its effect at one instant between its call and its return.
//
// usage: history-judge HISTORY PICTURE
//
// HISTORY has one operation in JSON on each line:
//
//	{"client":0,"key":"r1","kind":"set","value":"v7","call":1000,"return":2000}
//
// Kinds are set and get, whose value is null if there was none, and push and list, whose values are an element
// and all elements with commas between them. "length" is what push was answered. An operation of which the client
// does not know whether it was done has no return. Values and elements are there once in a history.
//
// It prints how much it has looked at, or fails and says which key is wrong. PICTURE is then a page of that key.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// How long it may look for an order.
const patience = 2 * time.Minute

type operation struct {
	Client int     `json:"client"`
	Key    string  `json:"key"`
	Kind   string  `json:"kind"`
	Value  *string `json:"value"`
	Length *int    `json:"length"`
	Call   int64   `json:"call"`
	Return *int64  `json:"return"`
}

func (own operation) text() string {
	if own.Value == nil {
		return "null"
	}
	return *own.Value
}

// What a key has: a value, or elements and how many.
type state struct {
	text  string
	count int
}

var nothing = state{text: "null"}

func (before state) with(element string) state {
	if before.count == 0 {
		return state{element, 1}
	}
	return state{before.text + "," + element, before.count + 1}
}

func (own operation) follows(before state) (bool, state) {
	switch own.Kind {
	case "set":
		return true, state{text: own.text()}
	case "push":
		after := before.with(own.text())
		return own.Length == nil || *own.Length == after.count, after
	default:
		return before.text == own.text(), before
	}
}

var model = porcupine.Model{
	Init: func() interface{} { return nothing },
	Step: func(before, input, _ interface{}) (bool, interface{}) {
		return input.(operation).follows(before.(state))
	},
	DescribeOperation: func(input, _ interface{}) string {
		own := input.(operation)
		return own.Kind + " " + own.text()
	},
	DescribeState: func(own interface{}) string { return own.(state).text },
}

// The operations of a key for the search. One whose outcome is not known, and that nobody has seen, may have its
// effect after all others, so it is left out. One that was seen had it before the first of those who have
// seen it returned.
func operations(all []operation) []porcupine.Operation {
	seen := map[string]int64{}
	for _, own := range all {
		if own.Kind != "get" && own.Kind != "list" || own.Value == nil {
			continue
		}
		for _, value := range strings.Split(*own.Value, ",") {
			if first, found := seen[value]; !found || *own.Return < first {
				seen[value] = *own.Return
			}
		}
	}
	var wanted []porcupine.Operation
	for _, own := range all {
		end, found := seen[own.text()]
		if own.Return != nil {
			end = *own.Return
		} else if !found {
			continue
		}
		if end < own.Call {
			log.Fatalf("%s: %s was seen before it was written", own.Key, own.text())
		}
		wanted = append(wanted, porcupine.Operation{ClientId: own.Client, Input: own, Call: own.Call, Return: end})
	}
	return wanted
}

func read(file io.Reader) map[string][]operation {
	keys := map[string][]operation{}
	lines := json.NewDecoder(bufio.NewReader(file))
	for {
		var own operation
		if err := lines.Decode(&own); err == io.EOF {
			return keys
		} else if err != nil {
			log.Fatal(err)
		}
		isRead := own.Kind == "get" || own.Kind == "list"
		if !isRead && own.Kind != "set" && own.Kind != "push" {
			log.Fatalf("no kind of operation: %q", own.Kind)
		}
		if isRead && own.Return == nil {
			continue
		}
		keys[own.Key] = append(keys[own.Key], own)
	}
}

func main() {
	log.SetFlags(0)
	file, err := os.Open(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	count, keys := 0, read(file)
	for key, all := range keys {
		wanted := operations(all)
		count += len(wanted)
		result := porcupine.CheckOperationsTimeout(model, wanted, patience)
		if result == porcupine.Ok {
			continue
		}
		_, info := porcupine.CheckOperationsVerbose(model, wanted, patience)
		if err := porcupine.VisualizePath(model, info, os.Args[2]); err != nil {
			log.Print(err)
		}
		log.Fatalf("%s: no order explains its %d operations (%s)", key, len(wanted), result)
	}
	fmt.Printf("%d operations of %d keys\n", count, len(keys))
}
