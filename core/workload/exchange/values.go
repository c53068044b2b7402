package exchange

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Bounds of what a trace may hold: those of Quartet's own format.
const (
	maxSeconds = 1e11
	maxCount   = 1 << 20
	maxYear    = 5000 // of a date: what lies between two of them is within maxSeconds
)

var nan = math.NaN()

// unknown reports whether a cell says that its value is not known.
func unknown(cell []byte) bool {
	if len(cell) > 8 || len(cell) > 0 && '0' <= cell[0] && cell[0] <= '9' {
		return false
	}
	switch strings.ToLower(string(cell)) {
	case "", "unknown", "none", "n/a", "na", "nan", "null", "nil", "<none>", "-", "invalid":
		return true
	}
	return false
}

// number is a finite decimal number.
func number(cell []byte) (float64, bool) {
	whole, digits := 0.0, len(cell) > 0 && len(cell) <= 15 // exact
	for _, c := range cell {
		switch {
		case '0' <= c && c <= '9':
			whole = whole*10 + float64(c-'0')
		case c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-':
			digits = false
		default: // a date, or nothing that is finite and decimal
			return 0, false
		}
	}
	if digits {
		return whole, true
	}
	x, err := strconv.ParseFloat(string(cell), 64)
	return x, err == nil
}

// moment is a time as a number of seconds, or as a date of a calendar in UTC or with its zone: 2023-01-31T18:30:00,
// 2023-01-31 18:30:00.25, 2023-01-31T18:30:00+01:00. A date without a zone is one of the given zone.
func moment(cell []byte, zone *time.Location) (float64, bool) {
	m, ok := instantOf(cell, zone)
	return m.first, ok
}

// instant is a moment in seconds. A date that clocks show twice, when they are put back, stands for either of two; any other
// date has the same moment as first and second.
type instant struct{ first, second float64 }

// instantOf is moment, with both readings of a date that the clocks of its zone show twice.
func instantOf(cell []byte, zone *time.Location) (instant, bool) {
	at := func(x float64) instant { return instant{x, x} }
	if x, ok := number(cell); ok {
		return at(x), 0 <= x && x <= maxSeconds
	}
	d, rest, ok := dateOf(cell)
	if !ok {
		return instant{}, false
	}
	fraction, rest := fractionOf(rest)
	rest = bytes.TrimPrefix(bytes.TrimSuffix(rest, []byte(" UTC")), []byte(" "))
	switch {
	case len(rest) > 0:
		offset, ok := offsetOf(rest)
		if !ok {
			return instant{}, false
		}
		fraction -= offset
	case zone != nil && zone != time.UTC && !bytes.HasSuffix(cell, []byte(" UTC")):
		first, second := d.in(zone)
		return instant{first + fraction, second + fraction}, true
	}
	return at(float64(((daysSince1970(d.year, d.month, d.day)*24+d.hour)*60+d.minute)*60+d.second) + fraction), true
}

// date is a second of a calendar.
type date struct{ year, month, day, hour, minute, second int }

// in is the first and the second moment, in Unix seconds, at which clocks of a zone show the date; they are the same unless the
// date is in the time by which clocks are put back.
func (d date) in(zone *time.Location) (first, second float64) {
	t := time.Date(d.year, time.Month(d.month), d.day, d.hour, d.minute, d.second, 0, zone)
	first, second = float64(t.Unix()), float64(t.Unix())
	begin, end := t.ZoneBounds()
	_, offset := t.Zone()
	if !begin.IsZero() {
		_, before := begin.Add(-time.Second).Zone()
		if back := before - offset; back > 0 && t.Sub(begin) < time.Duration(back)*time.Second {
			first -= float64(back)
		}
	}
	if !end.IsZero() {
		_, after := end.Zone()
		if back := offset - after; back > 0 && end.Sub(t) <= time.Duration(back)*time.Second {
			second += float64(back)
		}
	}
	return first, second
}

// times is when a job was submitted, when it started and when it ended; NaN for what is not known.
type times struct{ submit, start, end instant }

// twice reports whether a moment has two readings.
func (m instant) twice() bool { return m.second > m.first }

// settle chooses between the two readings of dates that clocks show twice: those by which the job lasted for its duration, or else
// those by which it does not start before it is submitted nor end before it starts, the earliest of them. The duration is in
// seconds, NaN where it is not known.
func (t *times) settle(duration float64) (submit, start, end float64) {
	submit, start, end = t.submit.first, t.start.first, t.end.first
	if !t.submit.twice() && !t.start.twice() && !t.end.twice() {
		return submit, start, end
	}
	best := fitOf(submit, start, end, duration)
	for _, x := range [...]float64{t.submit.first, t.submit.second} {
		for _, y := range [...]float64{t.start.first, t.start.second} {
			for _, z := range [...]float64{t.end.first, t.end.second} {
				if fit := fitOf(x, y, z, duration); fit > best {
					best, submit, start, end = fit, x, y, z
				}
			}
		}
	}
	return submit, start, end
}

// fitOf counts what speaks for three moments and a duration of one job.
func fitOf(submit, start, end, duration float64) (fit int) {
	const cut = 1 // seconds that may be lost where fractions are cut off
	if start != start {
		start = end - duration
	}
	for _, holds := range [...]bool{!(start < submit), !(end < start), end-start >= duration-cut, math.Abs(end-start-duration) <= cut} {
		if holds {
			fit++
		}
	}
	return fit
}

// dateOf reads a date to the second, and returns what follows it.
func dateOf(cell []byte) (d date, rest []byte, ok bool) {
	const form = "2006-01-02T15:04:05"
	if len(cell) < len(form) || cell[4] != '-' || cell[7] != '-' || cell[10] != 'T' && cell[10] != ' ' || cell[13] != ':' || cell[16] != ':' {
		return d, nil, false
	}
	for _, part := range [...]struct {
		from, to int
		into     *int
	}{{0, 4, &d.year}, {5, 7, &d.month}, {8, 10, &d.day}, {11, 13, &d.hour}, {14, 16, &d.minute}, {17, 19, &d.second}} {
		for _, c := range cell[part.from:part.to] {
			if c < '0' || c > '9' {
				return d, nil, false
			}
			*part.into = *part.into*10 + int(c-'0')
		}
	}
	return d, cell[len(form):], d.exists()
}

// exists reports whether the calendar has the date, in the years that a trace may hold. A minute may have a leap second.
func (d date) exists() bool {
	return within(d.year, 1970, maxYear) && within(d.month, 1, 12) && within(d.day, 1, daysOf(d.year, d.month)) &&
		d.hour <= 23 && d.minute <= 59 && d.second <= 60
}

func within(x, low, high int) bool { return low <= x && x <= high }

// fractionOf reads the fraction of a second that a text may begin with, such as .25, and returns what follows it.
func fractionOf(text []byte) (fraction float64, rest []byte) {
	if len(text) == 0 || text[0] != '.' {
		return 0, text
	}
	end := 1
	for end < len(text) && text[end] >= '0' && text[end] <= '9' {
		end++
	}
	fraction, _ = strconv.ParseFloat("0"+string(text[:end]), 64)
	return fraction, text[end:]
}

// finer says that a number would be a day of this century in another unit than seconds; empty where it would not.
func finer(cell []byte) string {
	const from, to = 1e9, 4e9 // 2001 to 2096
	x, ok := number(cell)
	for _, unit := range [...]struct {
		name string
		per  float64
	}{{"milliseconds", 1e3}, {"microseconds", 1e6}, {"nanoseconds", 1e9}} {
		if ok && from*unit.per <= x && x < to*unit.per {
			return " looks like " + unit.name + ", and is read in seconds"
		}
	}
	return ""
}

// offsetOf is the seconds that a zone such as Z, +01:00 or -0530 is ahead of UTC.
func offsetOf(text []byte) (float64, bool) {
	if len(text) == 1 && (text[0] == 'Z' || text[0] == 'z') {
		return 0, true
	}
	digits := text[1:]
	if len(digits) == 5 && digits[2] == ':' {
		digits = slices.Concat(digits[:2], digits[3:])
	}
	if text[0] != '+' && text[0] != '-' || len(digits) != 2 && len(digits) != 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(digits), 10, 32)
	if err != nil {
		return 0, false
	}
	if len(digits) == 2 {
		n *= 100
	}
	offset := float64(n/100*3600 + n%100*60)
	if text[0] == '-' {
		offset = -offset
	}
	return offset, n <= 1500
}

func daysOf(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// daysSince1970 counts the days of the Gregorian calendar, with years that begin in March.
func daysSince1970(year, month, day int) int {
	if month <= 2 {
		year, month = year-1, month+12
	}
	return 365*year + year/4 - year/100 + year/400 + (153*(month-3)+2)/5 + day - 1 - 719468
}

// span is a length of time: a number of seconds, or days, hours, minutes and seconds as Slurm writes them, [D-[HH:]]MM:SS.
func span(cell []byte) (float64, bool) {
	if x, ok := number(cell); ok {
		return x, math.Abs(x) <= maxSeconds
	}
	days, clock, dashed := bytes.Cut(cell, []byte("-"))
	total := 0.0
	if !dashed {
		clock = cell
	} else {
		d, ok := number(days)
		if !ok || d < 0 {
			return 0, false
		}
		total = d
	}
	parts := bytes.Split(clock, []byte(":"))
	if len(parts) > 3 || len(parts) < 2 && !dashed {
		return 0, false
	}
	var values [3]float64 // hours, minutes, seconds
	at := 3 - len(parts)
	if dashed {
		at = 0 // D-HH, D-HH:MM
	}
	for i, part := range parts {
		x, ok := number(part)
		if !ok || x < 0 {
			return 0, false
		}
		values[at+i] = x
	}
	total = total*86400 + values[0]*3600 + values[1]*60 + values[2]
	return total, total <= maxSeconds
}

// count is a whole number, which may be written as 4.0.
func count(cell []byte) (int, bool) {
	x, ok := number(cell)
	return int(x), ok && x == math.Trunc(x) && math.Abs(x) <= maxCount
}

// printable reports whether a text may be a name in a trace.
func printable(text []byte) bool {
	for _, c := range text {
		if c < ' ' || c >= 0x7f {
			return utf8.Valid(text) && !bytes.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
		}
	}
	return true
}

// outcomeOf is the outcome that a state of Slurm, of Kubernetes or of a run of ours stands for; ended is false for a job that
// has not ended, and known for a state that it knows.
func outcomeOf(state string) (outcome string, ended, known bool) {
	word := strings.ToUpper(state)
	if i := strings.IndexAny(word, " +"); i >= 0 {
		word = word[:i] // CANCELLED by 1000, COMPLETED+
	}
	switch strings.Map(letters, word) {
	case "":
		return "", true, true
	case "COMPLETED", "SUCCEEDED", "SUCCESS", "FINISHED", "JOBFINISHED", "PASS", "PASSED", "DONE", "COMPLETE", "CD", "TRUE":
		return "completed", true, true
	case "FAILED", "FAIL", "ERROR", "JOBFAILED", "BOOTFAIL", "BOOTFAILED", "F", "BF", "FALSE":
		return "failed", true, true
	case "CANCELLED", "CANCELED", "KILLED", "REVOKED", "CA", "RV", "DEACTIVATED":
		return "cancelled", true, true
	case "TIMEOUT", "DEADLINE", "TO", "DL", "MAXIMUMEXECUTIONTIMEEXCEEDED":
		return "timeout", true, true
	case "OUTOFMEMORY", "OOM", "OOMKILLED":
		return "out_of_memory", true, true
	case "NODEFAIL", "NODEFAILED", "NF":
		return "node_failed", true, true
	case "PREEMPTED", "EVICTED", "REQUEUED", "PR", "RQ":
		return "preempted", true, true
	case "RUNNING", "PENDING", "SUSPENDED", "COMPLETING", "CONFIGURING", "RESIZING", "REQUEUEHOLD", "STOPPED", "ADMITTED", "QUOTARESERVED",
		"INADMISSIBLE", "QUEUED", "WAITING", "UNFINISHED", "R", "PD", "S", "CG", "CF":
		return "", false, true
	}
	return "", true, false
}

// letters keeps letters only.
func letters(r rune) rune {
	if unicode.IsLetter(r) {
		return r
	}
	return -1
}

// gpus are the devices that a text of Slurm's resources names, such as billing=8,gres/gpu:a100=4,gres/gpu=4 in all, or
// gpu:a100:4(IDX:0-3) on each node; of is the types, sorted, with | between them.
func gpus(text []byte) (total int, of string, perNode, ok bool) {
	typed := 0
	var types []string
	for len(text) > 0 {
		var item []byte
		item, text = cutItem(text)
		g := gpuItem(item)
		perNode = perNode || g.perNode
		if !g.is {
			continue
		}
		if !g.valid {
			return 0, "", perNode, false
		}
		if g.kind == "" {
			total += g.count
			continue
		}
		typed += g.count
		if g.count > 0 && !slices.Contains(types, g.kind) {
			types = append(types, g.kind)
		}
	}
	slices.Sort(types)
	return max(total, typed), strings.Join(types, "|"), perNode, true
}

// gpuCount is what an item of Slurm's resources says of devices.
type gpuCount struct {
	is      bool   // it is about devices
	perNode bool   // the count is that of each node
	valid   bool   // it can be read
	kind    string // accelerator type; empty for any
	count   int    // number of devices
}

// gpuItem reads one item: gres/gpu:a100=4 in all, or gpu:a100:4(IDX:0-3) on each node.
func gpuItem(item []byte) (g gpuCount) {
	name, value, assigned := bytes.Cut(item, []byte("="))
	if !assigned {
		if at := bytes.IndexByte(item, '('); at >= 0 {
			item = item[:at]
		}
		if !bytes.HasPrefix(bytes.TrimPrefix(item, []byte("gres/")), []byte("gpu")) {
			return g
		}
		g.perNode = true
		if name, value = item, []byte("1"); bytes.IndexByte(item, ':') >= 0 {
			at := bytes.LastIndexByte(item, ':')
			name, value = item[:at], item[at+1:]
		}
	}
	kind, is := bytes.CutPrefix(bytes.TrimPrefix(name, []byte("gres/")), []byte("gpu"))
	if !is || len(kind) > 0 && kind[0] != ':' || assigned && !bytes.HasPrefix(name, []byte("gres/")) {
		return g // gres/gpumem, gres/gpuutil, cpu, mem
	}
	g.is = true
	g.count, g.valid = count(value)
	if !g.valid && !assigned { // gpu:a100, one of a type
		kind, g.count, g.valid = append([]byte(":"), value...), 1, true
	}
	g.valid = g.valid && g.count >= 0
	if len(kind) > 1 {
		g.kind = string(kind[1:])
		g.valid = g.valid && isType(kind[1:])
	}
	return g
}

// isType reports whether a text may be an accelerator type in a list of them.
func isType(name []byte) bool {
	return printable(name) && bytes.IndexByte(name, '|') < 0 && len(bytes.TrimSpace(name)) == len(name)
}

// unionOf is the types of two lists, sorted, with | between them; any type where one of the lists is empty.
func unionOf(a, b string) string {
	switch {
	case a == b:
		return a
	case a == "" || b == "":
		return ""
	}
	types := append(strings.Split(a, "|"), strings.Split(b, "|")...)
	slices.Sort(types)
	return strings.Join(slices.Compact(types), "|")
}

// cutItem cuts a list at its first comma outside parentheses.
func cutItem(text []byte) (item, rest []byte) {
	depth := 0
	for i, c := range text {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth <= 0:
			return text[:i], text[i+1:]
		}
	}
	return text, nil
}
