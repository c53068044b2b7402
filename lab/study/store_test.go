package study

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core/metrics"
)

func newStore(t *testing.T) *store {
	t.Helper()
	s, closed, err := open(t.TempDir(), lockFile)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(closed)
	return s
}

func hashOf(c string) string { return strings.Repeat(c, 64) }

func keep(t *testing.T, s *store, r *Record) {
	t.Helper()
	r.Schema = recordSchema
	if err := s.write(r, map[string][]byte{jobsTable: []byte("job,name\n1,a\n"), "usage": []byte("at_s,used\n0,1\n")}); err != nil {
		t.Fatal(err)
	}
}

// What is read is what was written whole, of this form and of the run that was asked for.
func TestWhatIsKeptIsWhole(t *testing.T) {
	s := newStore(t)
	hash := hashOf("a")
	keep(t, s, &Record{Hash: hash, Outcome: Completed, Summary: &metrics.Summary{}})
	text, err := os.ReadFile(s.path(hash))
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile(s.tablePath(hash, "usage"))
	if err != nil {
		t.Fatal(err)
	}
	got := s.read(hash)
	if got == nil || got.Tables["usage"] != "at_s,used" || len(got.Digests) != 2 || len(got.Tables) != 1 {
		t.Fatalf("read %+v", got)
	}
	if s.read(hashOf("b")) != nil {
		t.Error("what was never kept is read")
	}
	for name, tc := range map[string]struct {
		record func(string) string
		table  []byte // nil to remove it
		kept   bool
	}{
		"as it was":         {func(text string) string { return text }, table, true},
		"half a record":     {func(text string) string { return text[:len(text)/2] }, table, false},
		"another form":      {func(text string) string { return strings.Replace(text, recordSchema, "quartet.study.run/v0", 1) }, table, false},
		"of another run":    {func(text string) string { return strings.ReplaceAll(text, hash, hashOf("b")) }, table, false},
		"without a summary": {func(text string) string { return strings.Replace(text, `"summary"`, `"resume"`, 1) }, table, false},
		"another table":     {func(text string) string { return text }, append(slices.Clone(table), 'x'), false},
		"without its table": {func(text string) string { return text }, nil, false},
		"failed, no summary": {func(text string) string {
			return strings.NewReplacer(`"summary"`, `"resume"`, Completed, Failed).Replace(text)
		}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			err := os.WriteFile(s.path(hash), []byte(tc.record(string(text))), 0o600)
			if tc.table == nil {
				err = errors.Join(err, os.Remove(s.tablePath(hash, "usage")))
			} else {
				err = errors.Join(err, os.WriteFile(s.tablePath(hash, "usage"), tc.table, 0o600))
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := s.read(hash); (got != nil) != tc.kept {
				t.Errorf("read %+v, want some: %v", got, tc.kept)
			}
			if err := os.WriteFile(s.tablePath(hash, "usage"), table, 0o600); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// What another folder keeps of a run is taken whole, or not at all; the first choice is one that did not fail, of inputs as they are here.
func TestTake(t *testing.T) {
	from, to := newStore(t), newStore(t)
	whole, broken, failed := hashOf("a"), hashOf("b"), hashOf("c")
	keep(t, from, &Record{Hash: whole, Outcome: Completed, Summary: &metrics.Summary{Rounds: 7}})
	keep(t, from, &Record{Hash: broken, Outcome: Completed, Summary: &metrics.Summary{}})
	if err := os.Remove(from.tablePath(broken, jobsTable)); err != nil {
		t.Fatal(err)
	}
	if err := from.write(&Record{Schema: recordSchema, Hash: failed, Outcome: Failed, Error: "out of order"}, nil); err != nil {
		t.Fatal(err)
	}
	for hash, want := range map[string]bool{whole: true, broken: false, failed: true, hashOf("d"): false} {
		if taken, err := to.take(from, hash); taken != want || err != nil || (to.read(hash) != nil) != want {
			t.Errorf("%.1s: taken %v, error %v, kept %v; want %v", hash, taken, err, to.read(hash), want)
		}
	}
	if got := to.read(whole); got.Summary.Rounds != 7 || len(got.tables()) != 2 {
		t.Errorf("took %+v", got)
	}
	input := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(input, []byte("now"), 0o600); err != nil {
		t.Fatal(err)
	}
	var stores []*store
	run := hashOf("e")
	for _, r := range []*Record{
		{Outcome: Failed},
		{Outcome: Completed, Inputs: []quartet.Digest{{File: input, SHA256: "then"}}},
		{Outcome: Completed, Inputs: []quartet.Digest{{File: input, SHA256: digestOf(input)}, {File: input + "-gone", SHA256: "x"}}},
		{Outcome: Completed},
	} {
		s := newStore(t)
		r.Hash, r.Summary = run, &metrics.Summary{}
		keep(t, s, r)
		stores = append(stores, s)
	}
	for n, want := range map[int]int{1: 0, 2: 1, 3: 2, 4: 2} {
		if folder, record := to.choose(stores[:n], run); folder != stores[want] || record == nil {
			t.Errorf("of %d folders %v is chosen, want number %d", n, folder, want)
		}
	}
	if folder, record := to.choose(stores, hashOf("f")); folder != nil || record != nil {
		t.Errorf("chose %v of what nobody keeps", folder)
	}
	if s := newStore(t); s.usable(&Record{Inputs: []quartet.Digest{{File: input, SHA256: digestOf(input)}}}) != true ||
		s.usable(&Record{Inputs: []quartet.Digest{{File: input + "-gone", SHA256: "x"}}}) || s.usable(&Record{Inputs: []quartet.Digest{{File: input, SHA256: "then"}}}) {
		t.Error("a record is usable as long as its inputs are what they were")
	}
}

// Each row of a table is one of its run, also where its cells have several lines.
func TestPackedRowsAreOfTheirRun(t *testing.T) {
	table := "job,name\n1,plain\n2,\"two\nlines, \"\"quoted\"\"\"\n3,\"a\n\nb\"\n4,last"
	packed, err := pack("run", []byte(table))
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"run", "1", "plain"}, {"run", "2", "two\nlines, \"quoted\""}, {"run", "3", "a\n\nb"}, {"run", "4", "last"}}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A file is written whole, or is what it was.
func TestReplaceIsOneStep(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := replace(path, []byte("one")); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("half a file")
	err := replaceBy(path, func(w io.Writer) error {
		_, err := io.WriteString(w, "tw")
		return errors.Join(err, broken)
	})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v, want that of %s", err, path)
	}
	text, err := os.ReadFile(path)
	if entries, _ := os.ReadDir(dir); err != nil || string(text) != "one" || len(entries) != 1 {
		t.Errorf("%q, error %v, %d files; want what was there", text, err, len(entries))
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", info, err)
	}
	if err := replace(filepath.Join(dir, "none", "file"), nil); err == nil {
		t.Error("no error without a folder")
	}
}

// A folder that others work on says who does; what was left is removed by whoever has it alone.
func TestLock(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, storeFolder, temporary+"1")
	leave := func() {
		if err := errors.Join(os.MkdirAll(filepath.Dir(left), 0o755), os.WriteFile(left, nil, 0o600), os.WriteFile(filepath.Join(dir, temporary+"2"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	gone := func() bool {
		_, inner := os.Stat(left)
		_, outer := os.Stat(filepath.Join(dir, temporary+"2"))
		if errors.Is(inner, os.ErrNotExist) != errors.Is(outer, os.ErrNotExist) {
			t.Error("one of two is left")
		}
		return errors.Is(inner, os.ErrNotExist)
	}
	leave()
	_, shard, err := open(dir, lockFile+"-1-of-2")
	if err != nil || gone() {
		t.Fatalf("a shard: error %v, swept %v", err, gone())
	}
	_, whole, err := open(dir, lockFile)
	if err != nil || gone() {
		t.Fatalf("beside a shard: error %v, swept %v", err, gone())
	}
	if _, _, err := open(dir, lockFile); err == nil || !strings.Contains(err.Error(), "works on "+dir+"; wait until it has ended") || strings.Contains(err.Error(), "process  works") {
		t.Errorf("error %v, want one of the process that works there", err)
	}
	whole()
	shard()
	if _, whole, err = open(dir, lockFile); err != nil || !gone() {
		t.Fatalf("alone: error %v, swept %v", err, gone())
	}
	whole()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := open(file, lockFile); err == nil || !strings.Contains(err.Error(), "make the folder of the study") {
		t.Errorf("error %v, want that of a folder that is a file", err)
	}
}
