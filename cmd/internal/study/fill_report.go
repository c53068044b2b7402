package study

import (
	"encoding/csv"
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"github.com/quartet-sched/quartet/placement/score/inflation"
)

// fillReport is the files of a filling; nil for none.
type fillReport struct {
	files          []*os.File
	byPoint, tasks *csv.Writer
}

// newFillReport creates the files in a folder; none for "".
func newFillReport(folder string) (*fillReport, error) {
	if folder == "" {
		return nil, nil //nolint:nilnil // a filling without files
	}
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // like all outputs
		return nil, err
	}
	r := &fillReport{}
	for _, file := range []struct {
		name   string
		into   **csv.Writer
		header []string
	}{
		{"curves.csv", &r.byPoint, []string{"placement", "seed", "asked_percent", "allocated_percent", "fragments_percent"}},
		{"placements.csv", &r.tasks, []string{"placement", "seed", "event", "task", "node", "devices"}},
	} {
		out, err := os.Create(filepath.Join(folder, file.name))
		if err != nil {
			return nil, errors.Join(err, r.close())
		}
		r.files = append(r.files, out)
		*file.into = csv.NewWriter(out)
		_ = (*file.into).Write(file.header) // told by close
	}
	return r, nil
}

// placed writes each arrival of a draw.
func (r *fillReport) placed(d *inflation.Draw, placement string, seed int64) func(inflation.Arrival, inflation.Placement) {
	if r == nil {
		return nil
	}
	event := 0
	return func(a inflation.Arrival, p inflation.Placement) {
		node := ""
		if p.Fits {
			node = d.Nodes[p.Node].Name
		}
		_ = r.tasks.Write([]string{placement, strconv.FormatInt(seed, 10), strconv.Itoa(event), a.Name(), node, inflation.Devices(p.Devices)}) // told by close
		event++
	}
}

// curves writes the points of a run.
func (r *fillReport) curves(placement string, seed int64, c *inflation.Curves) {
	if r == nil {
		return
	}
	for x := range c.Allocated {
		_ = r.byPoint.Write([]string{ // told by close
			placement, strconv.FormatInt(seed, 10), strconv.Itoa(x), strconv.FormatFloat(c.Allocated[x], 'f', -1, 64), strconv.FormatFloat(c.Fragments[x], 'f', -1, 64),
		})
	}
}

// close writes what is left, and says what went wrong.
func (r *fillReport) close() error {
	if r == nil {
		return nil
	}
	var problems []error
	for i, w := range []*csv.Writer{r.byPoint, r.tasks} {
		if w == nil {
			continue
		}
		w.Flush()
		problems = append(problems, w.Error(), r.files[i].Close())
	}
	return errors.Join(problems...)
}
