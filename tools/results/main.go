// Command results measures every reproduction again and writes the tables of docs/results: what stands between
// <!-- table NAME --> and <!-- end --> there is replaced, the words around it stay.
// Its runs are those of studies, one of package lab/study for each table or part of one; processor times alone are measured beside
// them, see timed.
//
// Usage: go run ./tools/results -quartet PATH [-write docs/results] [-only NAME,NAME] [-keep DIR] [-j RUNS], with QUARTET_DATA set.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

func main() {
	binary := flag.String("quartet", "quartet", "the binary whose processor time is measured, made from the same tree as this program")
	folder := flag.String("write", "docs/results", "the folder of the documents to write into")
	only := flag.String("only", "", "the tables to write, separated by commas; all if empty")
	keep := flag.String("keep", "", "the folder that keeps runs, so that the next time only what changed is run; none if empty")
	workers := flag.Int("j", runtime.GOMAXPROCS(0), "runs at a time")
	flag.Parse()
	data := os.Getenv("QUARTET_DATA")
	if data == "" {
		fmt.Fprintln(os.Stderr, "QUARTET_DATA is not set: it names the folder that holds data/ and reference/")
		os.Exit(2)
	}
	if err := measureAll(*binary, data, *keep, *workers, *folder, *only); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func measureAll(quartet, data, keep string, workers int, folder, only string) (err error) {
	if keep == "" {
		if keep, err = os.MkdirTemp("", "quartet-results"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(keep)) }()
	}
	b, err := newBench(quartet, data, keep, workers)
	if err != nil {
		return err
	}
	return b.writeAll(folder, only)
}

// tables lists what the document may ask for.
var tables = map[string]func(*bench) ([][]string, error){
	"pollux-baselines":      (*bench).polluxBaselines,
	"pollux":                (*bench).pollux,
	"pollux-genetic":        (*bench).polluxGenetic,
	"pollux-load":           (*bench).polluxLoad,
	"pollux-interval":       (*bench).polluxInterval,
	"pollux-interference":   (*bench).polluxInterference,
	"pollux-fairness":       (*bench).polluxFairness,
	"pollux-merged":         (*bench).polluxMerged,
	"pollux-history":        (*bench).polluxKnowledge,
	"pollux-restart":        (*bench).polluxRestart,
	"pollux-neighbours":     (*bench).polluxNeighbours,
	"pollux-noise":          (*bench).polluxNoise,
	"pollux-cpu":            (*bench).polluxCPU,
	"pollux-pause":          (*bench).polluxPause,
	"compositions":          (*bench).compositions,
	"gavel-small":           (*bench).gavelSmall,
	"gavel-continuous":      (*bench).gavelContinuous,
	"gavel-spare":           (*bench).gavelSpare,
	"gavel-floor":           (*bench).gavelFloor,
	"gavel-makespan":        (*bench).gavelMakespan,
	"gavel-packed":          (*bench).gavelPacked,
	"gavel-packed-makespan": (*bench).gavelPackedMakespan,
	"blox":                  (*bench).blox,
	"tiresias":              (*bench).tiresias,
	"speed-processes":       (*bench).processes,
	"semantics":             (*bench).semantics,
	"matching":              (*bench).matching,
	"matching-seeds":        (*bench).matchingSeedSets,
	"matching-loads":        (*bench).matchingLoads,
	"matching-exact":        (*bench).matchingExact,
	"matching-straggler":    (*bench).matchingStraggler,
	"sia":                   (*bench).sia,
	"sia-applications":      (*bench).siaApplications,
	"sia-baselines":         (*bench).siaBaselines,
	"sia-variants":          (*bench).siaVariants,
}

var block = regexp.MustCompile(`(?s)<!-- table (\S+) -->\n.*?<!-- end -->`)

// writeAll replaces the tables of every document of a folder, or only those named.
func (b *bench) writeAll(folder, only string) error {
	documents, err := filepath.Glob(filepath.Join(folder, "*.md"))
	if err != nil {
		return err
	}
	wanted := strings.FieldsFunc(only, func(r rune) bool { return r == ',' })
	missing := slices.Clone(wanted)
	for _, document := range documents {
		text, err := os.ReadFile(document)
		if err != nil {
			return err
		}
		for _, found := range block.FindAllSubmatch(text, -1) {
			missing = slices.DeleteFunc(missing, func(name string) bool { return name == string(found[1]) })
			if tables[string(found[1])] == nil {
				return fmt.Errorf("%s asks for unknown table %q", document, found[1])
			}
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("no document in %s has table %q", folder, missing[0])
	}
	for _, document := range documents {
		if err := b.write(document, wanted); err != nil {
			return err
		}
	}
	return nil
}

// write replaces the tables of a document, or only those wanted.
func (b *bench) write(document string, wanted []string) error {
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	var failed error
	replaced := block.ReplaceAllFunc(text, func(old []byte) []byte {
		name := string(block.FindSubmatch(old)[1])
		if failed != nil || len(wanted) > 0 && !slices.Contains(wanted, name) {
			return old
		}
		rows, err := tables[name](b)
		if err != nil {
			failed = fmt.Errorf("table %q: %w", name, err)
			return old
		}
		return fmt.Appendf(nil, "<!-- table %s -->\n%s<!-- end -->", name, markdown(rows))
	})
	if failed != nil || bytes.Equal(replaced, text) {
		return failed
	}
	return os.WriteFile(document, replaced, 0o644)
}

func markdown(rows [][]string) string {
	var b strings.Builder
	for i, row := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			b.WriteString("|" + strings.Repeat("---|", len(row)) + "\n")
		}
	}
	return b.String()
}
