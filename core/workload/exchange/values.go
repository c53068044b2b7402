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
	case "", "unknown", "none", "n/a", "na", "null", "nil", "<none>", "-", "invalid":
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
	if x, ok := number(cell); ok {
		return x, 0 <= x && x <= maxSeconds
	}
	const seconds = len("2006-01-02T15:04:05")
	if len(cell) < seconds || cell[4] != '-' || cell[7] != '-' || cell[10] != 'T' && cell[10] != ' ' || cell[13] != ':' || cell[16] != ':' {
		return 0, false
	}
	var parts [6]int
	for i, at := range [...]struct{ from, to int }{{0, 4}, {5, 7}, {8, 10}, {11, 13}, {14, 16}, {17, 19}} {
		for _, c := range cell[at.from:at.to] {
			if c < '0' || c > '9' {
				return 0, false
			}
			parts[i] = parts[i]*10 + int(c-'0')
		}
	}
	year, month, day, hour, minute, second := parts[0], parts[1], parts[2], parts[3], parts[4], parts[5]
	if year < 1970 || year > maxYear || month < 1 || month > 12 || day < 1 || day > daysOf(year, month) || hour > 23 || minute > 59 || second > 60 {
		return 0, false
	}
	rest, fraction := cell[seconds:], 0.0
	if len(rest) > 0 && rest[0] == '.' {
		end := 1
		for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
			end++
		}
		fraction, _ = strconv.ParseFloat("0"+string(rest[:end]), 64)
		rest = rest[end:]
	}
	rest = bytes.TrimPrefix(bytes.TrimSuffix(rest, []byte(" UTC")), []byte(" "))
	switch {
	case len(rest) > 0:
		offset, ok := offsetOf(rest)
		if !ok {
			return 0, false
		}
		fraction -= offset
	case zone != nil && zone != time.UTC && !bytes.HasSuffix(cell, []byte(" UTC")):
		return float64(time.Date(year, time.Month(month), day, hour, minute, second, 0, zone).Unix()) + fraction, true
	}
	return float64(((daysSince1970(year, month, day)*24+hour)*60+minute)*60+second) + fraction, true
}

// finer tells that a number would be a day of this century in another unit than seconds; empty where it would not.
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
	ok = true
	typed := 0
	var types []string
	for len(text) > 0 {
		var item []byte
		item, text = cutItem(text)
		name, value, assigned := bytes.Cut(item, []byte("="))
		if !assigned {
			if at := bytes.IndexByte(item, '('); at >= 0 {
				item = item[:at]
			}
			if !bytes.HasPrefix(bytes.TrimPrefix(item, []byte("gres/")), []byte("gpu")) {
				continue
			}
			at := bytes.LastIndexByte(item, ':')
			if at < 0 {
				name, value = item, []byte("1")
			} else {
				name, value = item[:at], item[at+1:]
			}
			perNode = true
		}
		kind, is := bytes.CutPrefix(bytes.TrimPrefix(name, []byte("gres/")), []byte("gpu"))
		if !is || len(kind) > 0 && kind[0] != ':' || assigned && !bytes.HasPrefix(name, []byte("gres/")) {
			continue // gres/gpumem, gres/gpuutil, cpu, mem
		}
		n, valid := count(value)
		if !valid && !assigned { // gpu:a100, one of a type
			kind, n, valid = append([]byte(":"), value...), 1, true
		}
		if !valid || n < 0 {
			return 0, "", perNode, false
		}
		if len(kind) <= 1 {
			total += n
			continue
		}
		typed += n
		if name := kind[1:]; !printable(name) || bytes.IndexByte(name, '|') >= 0 || len(bytes.TrimSpace(name)) < len(name) {
			return 0, "", perNode, false
		}
		if t := string(kind[1:]); n > 0 && !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	slices.Sort(types)
	return max(total, typed), strings.Join(types, "|"), perNode, ok
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
