package report

import (
	"math"
	"strconv"
	"strings"
)

func itoa(i int) string { return strconv.Itoa(i) }

// unknownText stands for a value that is not known.
const unknownText = "–"

// digits writes a number to four digits.
func digits(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return unknownText
	case math.Abs(v) >= 1000 && math.Abs(v) < 1e15:
		return grouped(strconv.FormatFloat(v, 'f', 0, 64))
	default:
		return trimmed(v, 4)
	}
}

// trimmed writes a number to so many digits, without zeros at its end.
func trimmed(v float64, n int) string {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', n-1, 64), 64)
	if err != nil {
		return unknownText
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// grouped sets commas between thousands.
func grouped(whole string) string {
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	return sign + whole
}

// span writes seconds in the unit in which they read best.
func span(s float64) string {
	switch abs := math.Abs(s); {
	case math.IsNaN(s) || math.IsInf(s, 0):
		return unknownText
	case abs != 0 && abs < 1e-3:
		return trimmed(s*1e6, 3) + " µs"
	case abs != 0 && abs < 1:
		return trimmed(s*1e3, 3) + " ms"
	case abs < 120:
		return trimmed(s, 3) + " s"
	case abs < 7200:
		return trimmed(s/60, 3) + " min"
	case abs < 172800:
		return trimmed(s/3600, 3) + " h"
	default:
		return trimmed(s/86400, 4) + " d"
	}
}

func percent(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return unknownText
	}
	return trimmed(100*v, 3) + " %"
}

// shellQuoted is a path as one word of a command.
func shellQuoted(path string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("_-./=:@%+,", c)
	}
	if path != "" && strings.IndexFunc(path, func(c rune) bool { return !plain(c) }) < 0 {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
