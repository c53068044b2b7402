// Command results measures every reproduction again and writes the tables of docs/results.md: what stands between
// <!-- table NAME --> and <!-- end --> there is replaced, the words around it stay.
//
// Usage: go run ./tools/results -quartet PATH [-write docs/results.md] [-only NAME,NAME] [-keep DIR], with QUARTET_DATA set.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

func main() {
	quartet := flag.String("quartet", "quartet", "the binary to measure")
	document := flag.String("write", "docs/results.md", "the document to write into")
	only := flag.String("only", "", "the tables to write, separated by commas; all if empty")
	keep := flag.String("keep", "", "the folder that keeps runs, so that the next time only what changed is run; none if empty")
	flag.Parse()
	data := os.Getenv("QUARTET_DATA")
	if data == "" {
		fmt.Fprintln(os.Stderr, "QUARTET_DATA is not set: it names the folder that holds data/ and reference/")
		os.Exit(2)
	}
	if err := measureAll(*quartet, data, *keep, *document, *only); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func measureAll(quartet, data, keep, document, only string) (err error) {
	out, err := os.MkdirTemp("", "quartet-results")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(out)) }()
	if keep == "" {
		keep = out
	}
	b, err := newBench(quartet, data, out, keep)
	if err != nil {
		return err
	}
	return b.write(document, only)
}

// tables lists what the document may ask for.
var tables = map[string]func(*bench) ([][]string, error){
	"pollux-baselines":    (*bench).polluxBaselines,
	"pollux":              (*bench).pollux,
	"pollux-genetic":      (*bench).polluxGenetic,
	"pollux-load":         (*bench).polluxLoad,
	"pollux-interval":     (*bench).polluxInterval,
	"pollux-interference": (*bench).polluxInterference,
	"pollux-fairness":     (*bench).polluxFairness,
	"pollux-merged":       (*bench).polluxMerged,
	"pollux-history":      (*bench).polluxHistory,
	"pollux-cpu":          (*bench).polluxCPU,
	"pollux-pause":        (*bench).polluxPause,
	"compositions":        (*bench).compositions,
	"gavel-small":         (*bench).gavelSmall,
	"gavel-continuous":    (*bench).gavelContinuous,
	"gavel-spare":         (*bench).gavelSpare,
	"gavel-floor":         (*bench).gavelFloor,
	"gavel-makespan":      (*bench).gavelMakespan,
	"blox":                (*bench).blox,
	"tiresias":            (*bench).tiresias,
	"semantics":           (*bench).semantics,
	"matching":            (*bench).matching,
	"matching-loads":      (*bench).matchingLoads,
	"matching-exact":      (*bench).matchingExact,
	"matching-straggler":  (*bench).matchingStraggler,
	"sia":                 (*bench).sia,
	"sia-applications":    (*bench).siaApplications,
	"sia-baselines":       (*bench).siaBaselines,
	"sia-variants":        (*bench).siaVariants,
}

var block = regexp.MustCompile(`(?s)<!-- table (\S+) -->\n.*?<!-- end -->`)

// write replaces the tables of a document, or only those named.
func (b *bench) write(document, only string) error {
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	wanted := strings.FieldsFunc(only, func(r rune) bool { return r == ',' })
	found := map[string]bool{}
	var failed error
	text = block.ReplaceAllFunc(text, func(old []byte) []byte {
		name := string(block.FindSubmatch(old)[1])
		found[name] = true
		if failed != nil || len(wanted) > 0 && !slices.Contains(wanted, name) {
			return old
		}
		measure, known := tables[name]
		if !known {
			failed = fmt.Errorf("%s asks for unknown table %q", document, name)
			return old
		}
		rows, err := measure(b)
		if err != nil {
			failed = fmt.Errorf("table %q: %w", name, err)
			return old
		}
		return fmt.Appendf(nil, "<!-- table %s -->\n%s<!-- end -->", name, markdown(rows))
	})
	for _, name := range wanted {
		if failed == nil && !found[name] {
			failed = fmt.Errorf("%s has no table %q", document, name)
		}
	}
	if failed != nil {
		return failed
	}
	return os.WriteFile(document, text, 0o644)
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
