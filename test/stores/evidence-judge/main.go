// Judges what the tests made, a case a line, with code of Go's checksum database: "ok", or what is wrong.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type evidence struct {
	Note, Key, Text string    // A checkpoint, a key, and what was signed.
	Statement       []byte    // A row...
	Index           int64     // ...and where it is.
	Older           int64     // A size...
	OlderRoot       tlog.Hash // ...and the root of that size.
	Size            int64
	Root            tlog.Hash
	Proof           []tlog.Hash
}

func judged(kind string, it evidence) error {
	switch kind {
	case "note":
		key, err := note.NewVerifier(it.Key)
		if err != nil {
			return err
		}
		opened, err := note.Open([]byte(it.Note), note.VerifierList(key))
		if err == nil && opened.Text != it.Text {
			return fmt.Errorf("another text: %q", opened.Text)
		}
		return err
	case "row":
		return tlog.CheckRecord(it.Proof, it.Size, it.Root, it.Index, tlog.RecordHash(it.Statement))
	case "tree":
		return tlog.CheckTree(it.Proof, it.Size, it.Root, it.Older, it.OlderRoot)
	}
	return fmt.Errorf("no such kind: %s", kind)
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var line struct {
			Kind string
			It   evidence
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			log.Fatal(err)
		}
		answer := "ok"
		if err := judged(line.Kind, line.It); err != nil {
			answer = err.Error()
		}
		fmt.Println(answer)
	}
	if err := lines.Err(); err != nil {
		log.Fatal(err)
	}
}
