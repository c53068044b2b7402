package exchange

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

// rows reads a table with a header.
func (in *importer) rows(content io.Reader, l *layout) error {
	in.requeue = l.requeue
	s := &splitter{lines: newLines(content), divider: l.divider, quotes: l.quotes}
	header, err := in.header(s, l)
	if err != nil {
		return err
	}
	h, err := in.heading(header, s.line, l)
	if err != nil {
		return err
	}
	t := &rowReader{importer: in, layout: l, heading: h, states: map[string]state{}, sizes: map[string]size{}}
	for {
		cells, err := s.next()
		if errors.Is(err, io.EOF) {
			in.join(l.job)
			return nil
		}
		if in.tally.rows++; in.tally.rows%chunk == 0 && in.Err() != nil {
			return in.Err()
		}
		switch {
		case errors.Is(err, errLong), errors.Is(err, errQuote), errors.Is(err, errAfter):
			in.tally.drop(err.Error(), s.line, "")
		case err != nil:
			return in.broken(s.line, err)
		default:
			t.line = s.line
			t.row(cells)
		}
	}
}

// header is the first row, or the columns of the layout where the file has no header. It says what divides the columns where
// the layout leaves that open.
func (in *importer) header(s *splitter, l *layout) ([][]byte, error) {
	for {
		line, err := s.lines.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil, in.problem(0, "the file is empty", "expected a header")
		case err != nil:
			return nil, in.broken(s.lines.number, err)
		case len(bytes.TrimSpace(line)) == 0:
			continue
		}
		if s.divider == 0 {
			s.divider = ','
			for _, other := range []byte{'\t', ';', '|'} {
				if bytes.Count(line, []byte{other}) > bytes.Count(line, []byte{s.divider}) {
					s.divider = other
				}
			}
		}
		if isJSON(line) {
			return nil, in.problem(s.lines.number, "is JSON, not a table", "JSON is read with --from kubectl, philly or batsim")
		}
		if bytes.IndexByte(line, s.divider) < 0 {
			return nil, in.problem(s.lines.number, fmt.Sprintf("no columns are divided by %q", s.divider), "expected a header; sacct writes one with --parsable2 and without --noheader")
		}
		s.lines.unread([][]byte{bytes.Clone(line)})
		cells, err := s.next()
		if err != nil {
			return nil, in.broken(s.line, err)
		}
		header := make([][]byte, len(cells))
		for i, cell := range cells {
			header[i] = bytes.Clone(cell)
		}
		if len(l.header) > 0 && !slices.ContainsFunc(cells, func(c []byte) bool { return string(bytes.TrimSpace(c)) == l.header[0] }) {
			s.lines.unread([][]byte{bytes.Clone(line)})
			header = header[:0]
			for _, name := range l.header {
				header = append(header, []byte(name))
			}
		}
		return header, nil
	}
}

// isJSON reports whether the first line of a file begins an object or an array of JSON.
func isJSON(line []byte) bool {
	line = bytes.TrimSpace(line)
	if line[0] != '{' && line[0] != '[' {
		return false
	}
	rest := bytes.TrimSpace(line[1:])
	return len(rest) == 0 || bytes.IndexByte([]byte(`"{}[]`), rest[0]) >= 0
}

// rowReader makes records of the rows of a table.
type rowReader struct {
	*importer
	*layout
	*heading
	cells  [][]byte
	line   int
	merged [][]byte
	nodes  int              // of the row; 1 where it does not say
	share  int16            // thousandths of a device that each replica of the row has; 0 for a whole one
	states map[string]state // as outcomeOf reads them
	sizes  map[string]size  // as gpus reads them
}

type state struct {
	outcome      string
	ended, known bool
}

type size struct {
	devices    int
	milli      int16 // thousandths of each device; 0 for whole ones
	of         string
	perNode    bool
	understood bool
}

// maxCached bounds what is remembered of texts that come again and again.
const maxCached = 1 << 12

// state is outcomeOf a text.
func (t *rowReader) state(text []byte) state {
	s, found := t.states[string(text)]
	if !found {
		if s.outcome, s.ended, s.known = outcomeOf(t.word(string(text))); len(t.states) < maxCached {
			t.states[string(text)] = s
		}
	}
	return s
}

// word is what Quartet calls a word of the layout.
func (t *rowReader) word(text string) string {
	if known, found := t.words[strings.ToLower(text)]; found {
		return known
	}
	return text
}

// size is gpus of a text.
func (t *rowReader) size(text []byte) size {
	s, found := t.sizes[string(text)]
	if !found {
		if s.devices, s.of, s.perNode, s.understood = gpus(text); len(t.sizes) < maxCached {
			t.sizes[string(text)] = s
		}
	}
	return s
}

// has is the first cell of a field that is known.
func (t *rowReader) has(f field) ([]byte, bool) {
	for _, k := range t.fields[f] {
		if cell := bytes.TrimSpace(t.cells[k]); !unknown(cell) {
			return cell, true
		}
	}
	return nil, false
}

func (t *rowReader) drop(reason string, example []byte) {
	t.tally.drop(reason, t.line, string(example))
}

// row keeps a row or drops it for the first of these reasons that it gives.
func (t *rowReader) row(cells [][]byte) {
	if t.cells = t.aligned(cells); t.cells == nil {
		t.drop(fmt.Sprintf("row has not the %d columns of the header", len(t.names)), cells[0])
		return
	}
	r := Record{line: int32(t.line), Start: nan, Limit: nan, Estimate: nan}
	if !t.named(&r) || !t.wanted(&r) || !t.sized(&r) || !t.timed(&r) || !t.described(&r) {
		return
	}
	t.keep(&r)
}

// aligned is the cells of a row by column. A row with more cells has dividers in a free text, where that is the only
// way to read it.
func (t *rowReader) aligned(cells [][]byte) [][]byte {
	more := len(cells) - len(t.names)
	if more <= 0 {
		if more < 0 {
			return nil
		}
		return cells
	}
	if more == 1 && len(cells[len(cells)-1]) == 0 { // --parsable ends rows with a divider
		return cells[:len(t.names)]
	}
	for _, k := range t.texts {
		t.merged = append(t.merged[:0], cells[:k]...)
		t.merged = append(t.merged, bytes.Join(cells[k:k+more+1], []byte{t.divider}))
		t.merged = append(t.merged, cells[k+more+1:]...)
		t.cells = t.merged
		if t.plausible() {
			return t.merged
		}
	}
	return nil
}

// plausible reports whether cells are what their columns hold.
func (t *rowReader) plausible() bool {
	for _, f := range [...]field{fieldSubmit, fieldStart, fieldEnded} {
		if cell, ok := t.has(f); ok {
			if _, ok := moment(cell, t.Zone); !ok {
				return false
			}
		}
	}
	for _, f := range [...]field{fieldDuration, fieldLimitMinutes} {
		if cell, ok := t.has(f); ok {
			if _, ok := span(cell); !ok {
				return false
			}
		}
	}
	if cell, ok := t.has(fieldReplicas); ok && bytes.IndexByte(cell, '=') < 0 {
		return false
	}
	cell, _ := t.has(fieldOutcome)
	return t.state(cell).known
}

// named takes the name of a row.
func (t *rowReader) named(r *Record) bool {
	if t.idAt >= 0 {
		switch id := t.cells[t.idAt]; {
		case bytes.IndexByte(id, '.') >= 0:
			t.drop("step of a job", id)
			return false
		case bytes.IndexByte(id, '[') >= 0:
			t.drop("tasks of an array that never started", id)
			return false
		}
	}
	if len(t.fields[fieldName]) == 0 {
		r.Name = fmt.Sprintf("job-%06d", t.tally.rows-1)
		return true
	}
	name, ok := t.has(fieldName)
	if !ok || !printable(name) {
		t.drop(reasonName, name)
		return false
	}
	if space, ok := t.has(fieldNamespace); ok && printable(space) {
		r.Name = string(space) + "/" + string(name)
		return true
	}
	r.Name = string(name)
	return true
}

// wanted takes the outcome of a row, and asks for those to keep.
func (t *rowReader) wanted(r *Record) bool {
	cell, _ := t.has(fieldOutcome)
	state := t.state(cell)
	r.Outcome = state.outcome
	for i, k := range t.Keep {
		if cell := bytes.TrimSpace(t.cells[t.keepBy[i]]); !t.matches(k, cell) {
			t.drop(reasonKeep(k), cell)
			return false
		}
	}
	if !state.ended {
		t.drop(reasonNotEnded, cell)
		return false
	}
	return true
}

// matches reports whether a cell has one of the values to keep: all of it, its first word, or the outcome that it stands for.
func (t *rowReader) matches(k Keep, cell []byte) bool {
	word, _, _ := bytes.Cut(cell, []byte(" "))
	return slices.ContainsFunc(k.Values, func(v string) bool {
		if bytes.EqualFold(cell, []byte(v)) || bytes.EqualFold(word, []byte(v)) {
			return true
		}
		outcome := t.state(cell).outcome
		return outcome != "" && strings.EqualFold(outcome, v)
	})
}

// reasonFraction is that of a row whose replicas would have unequal parts of devices.
const reasonFraction = "GPUs are more than one, and no whole number"

// sized takes the devices of a row, and their types where the same text names them.
func (t *rowReader) sized(r *Record) bool {
	m := 1
	nodes, known := t.has(fieldNodes)
	if known {
		if m, known = count(nodes); !known || m <= 0 {
			m, known = 1, false
		}
	}
	t.nodes = m
	for _, f := range [...]field{fieldReplicas, fieldMeanReplicas} {
		for _, k := range t.fields[f] {
			cell := bytes.TrimSpace(t.cells[k])
			if unknown(cell) {
				continue
			}
			size := t.sizeOf(cell, f)
			if size.perNode && t.nodesMapped && !known {
				t.drop("nodes cannot be read", nodes)
				return false
			}
			n := size.devices
			if size.perNode {
				n *= m
			}
			if size.milli > core.WholeDevice {
				t.drop(reasonFraction, cell)
				return false
			}
			if !size.understood || n < 0 || n > maxCount {
				t.drop("replicas cannot be read", cell)
				return false
			}
			if n > 0 {
				r.Replicas, r.Accelerators, t.share = int32(n), t.label([]byte(size.of)), size.milli
				return true
			}
		}
	}
	t.drop(reasonNoGPU, t.cells[0])
	return false
}

// sizeOf reads a number of devices, which may be a part of one, a mean over time, or a text of Slurm's resources.
func (t *rowReader) sizeOf(cell []byte, f field) size {
	n, valid := count(cell)
	x, ok := number(cell)
	unit := cmp.Or(t.units[f], 1)
	switch {
	case !ok || t.steps || x <= 0 || x*unit > maxCount || valid && unit == 1:
	case f == fieldMeanReplicas:
		n, valid = max(1, int(math.Round(x))), true
	default:
		s := size{perNode: t.nodesMapped}
		milli := math.Round(x * unit * core.WholeDevice)
		s.devices, s.understood = int(milli)/core.WholeDevice, milli > 0
		if milli != math.Trunc(milli/core.WholeDevice)*core.WholeDevice {
			s.devices, s.milli = 1, int16(min(milli, core.WholeDevice+1))
		}
		return s
	}
	if !valid && (t.steps || bytes.Contains(cell, []byte("gpu"))) {
		of := t.size(cell)
		of.perNode = of.perNode || t.nodesMapped && !t.steps
		return of
	}
	return size{devices: n, perNode: t.nodesMapped, understood: valid}
}

// timed takes the times of a row.
func (t *rowReader) timed(r *Record) bool {
	var at times
	for _, m := range [...]struct {
		field field
		into  *instant
	}{{fieldSubmit, &at.submit}, {fieldStart, &at.start}, {fieldEnded, &at.end}} {
		*m.into = instant{nan, nan}
		cell, known := t.has(m.field)
		if !known {
			continue
		}
		x, ok := instantOf(cell, t.Zone)
		if !ok {
			t.drop(fieldNames[m.field]+cmp.Or(finer(cell), " cannot be read"), cell)
			return false
		}
		*m.into = x
	}
	r.Duration = nan
	if cell, known := t.has(fieldDuration); known {
		x, ok := span(cell)
		if !ok {
			t.drop("duration_s cannot be read", cell)
			return false
		}
		r.Duration = x
	}
	var end float64
	r.Submit, r.Start, end = at.settle(r.Duration)
	if math.IsNaN(r.Start) && len(t.fields[fieldStart]) == 0 {
		if r.Start = micros(end - r.Duration); r.Start == micros(r.Submit) {
			r.Start = r.Submit // what it began before is the error of rounding
		}
	}
	fault := t.untimed(r, end)
	if fault == "" && math.IsNaN(r.Duration) {
		if r.Duration = micros(end - r.Start); math.IsNaN(r.Duration) {
			fault = "duration_s is not known"
		}
	}
	if fault = cmp.Or(fault, r.fault()); fault != "" {
		t.drop(fault, t.cells[0])
		return false
	}
	return true
}

// untimed returns which of its times a row lacks, or has in the wrong order; nothing for one that has what it needs.
func (t *rowReader) untimed(r *Record, end float64) string {
	lacks := func(x float64, f field) bool {
		return math.IsNaN(x) && len(t.fields[f]) > 0 && (t.toNow || math.IsNaN(r.Duration))
	}
	switch {
	case math.IsNaN(r.Submit):
		return "submit_s is not known"
	case end < r.Start:
		return reasonBackwards
	case lacks(r.Start, fieldStart):
		return reasonNeverRan
	case lacks(end, fieldEnded):
		return "end is not known"
	}
	return ""
}

// described takes what else a row tells.
func (t *rowReader) described(r *Record) bool {
	for _, l := range [...]struct {
		field field
		into  *string
	}{{fieldTenant, &r.Tenant}, {fieldApplication, &r.Application}, {fieldAccelerators, &r.Accelerators}} {
		cell, known := t.has(l.field)
		if !known {
			continue
		}
		read := cell
		if l.field == fieldAccelerators {
			read = once(cell)
		}
		if !printable(read) || l.field == fieldAccelerators && !distinct(read) {
			t.drop(fieldNames[l.field]+" cannot be read", cell)
			return false
		}
		*l.into = t.label(read)
	}
	return t.limited(r) && t.detailed(r)
}

// limited takes how long a job was allowed, and was expected, to last.
func (t *rowReader) limited(r *Record) bool {
	for _, s := range [...]struct {
		field field
		unit  float64
		into  *float64
	}{{fieldLimit, 1, &r.Limit}, {fieldLimitMinutes, 60, &r.Limit}, {fieldEstimate, 1, &r.Estimate}} {
		cell, known := t.has(s.field)
		if !known || *s.into == *s.into {
			continue
		}
		if word := strings.ToLower(string(cell)); word == "unlimited" || word == "partition_limit" {
			continue
		}
		x, ok := span(cell)
		if x *= s.unit; !ok || x < 0 || x > maxSeconds {
			t.drop(fieldNames[s.field]+" cannot be read", cell)
			return false
		}
		if x > 0 {
			*s.into = x
		}
	}
	return true
}
