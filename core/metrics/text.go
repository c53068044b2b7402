package metrics

import (
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/quartet-sched/quartet/core"
)

// AppendNumber appends the shortest decimal that reads back as x, and nothing for a number that is not known.
func AppendNumber(b []byte, x float64) []byte {
	const exact = 1 << 53 // whole numbers below need no search for the shortest decimal
	if n := int64(x); -exact < x && x < exact && float64(n) == x && n != 0 {
		return strconv.AppendInt(b, n, 10)
	}
	if !Number(x).Known() {
		return b
	}
	return strconv.AppendFloat(b, x, 'f', -1, 64)
}

// AppendCell appends a text as a CSV cell of RFC 4180.
func AppendCell(b []byte, text string) []byte {
	if !strings.ContainsAny(text, "\",\r\n") {
		return append(b, text...)
	}
	b = append(b, '"')
	for i := range len(text) {
		if text[i] == '"' {
			b = append(b, '"')
		}
		b = append(b, text[i])
	}
	return append(b, '"')
}

// appendString appends a text as a JSON string. Bytes that are not UTF-8 become U+FFFD.
func appendString(b []byte, text string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&0xf])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}

// appendDevices appends a set of devices as "0,1,3".
func appendDevices(b []byte, devices core.DeviceSet) []byte {
	for rest := devices; rest != 0; rest &= rest - 1 {
		if rest != devices {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(bits.TrailingZeros64(uint64(rest))), 10)
	}
	return b
}
