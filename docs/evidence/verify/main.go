// Checks that a row is in the log of a tenant:
//
//	go run . PROOF STATEMENT KEY
//
// PROOF and STATEMENT are files; KEY is the key of the log, as you got it when you began to keep checkpoints.
package main

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 4 {
		log.Fatal("usage: go run . PROOF STATEMENT KEY")
	}
	proof := string(must(os.ReadFile(os.Args[1])))
	statement := bytes.TrimSuffix(must(os.ReadFile(os.Args[2])), []byte("\n"))
	key := must(note.NewVerifier(os.Args[3]))

	// The proof: a first line, the index of the row, one hash a line, an empty line, and a checkpoint.
	head, checkpoint, _ := strings.Cut(proof, "\n\n")
	lines := strings.Split(head, "\n")
	if len(lines) < 2 || lines[0] != "c2sp.org/tlog-proof@v1" {
		log.Fatal("This is no proof.")
	}
	index := must(strconv.ParseInt(strings.TrimPrefix(lines[1], "index "), 10, 64))
	var hashes tlog.RecordProof
	for _, line := range lines[2:] {
		hashes = append(hashes, must(tlog.ParseHash(line)))
	}

	// The checkpoint, signed by the key: the name of the log, how many rows it has, and the root of their tree.
	signed := must(note.Open([]byte(checkpoint), note.VerifierList(key)))
	text := strings.Split(signed.Text, "\n")
	if len(text) < 3 || text[0] != key.Name() {
		log.Fatal("This is no checkpoint of " + key.Name() + ".")
	}
	size, root := must(strconv.ParseInt(text[1], 10, 64)), must(tlog.ParseHash(text[2]))

	if err := tlog.CheckRecord(hashes, size, root, index, tlog.RecordHash(statement)); err != nil {
		log.Fatal("The statement is NOT this row of the log: ", err)
	}
	fmt.Printf("The statement is row %d of %d of %s.\n", index+1, size, text[0])
}
