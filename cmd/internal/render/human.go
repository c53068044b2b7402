package render

import (
	"fmt"
	"math"
)

// Span words a number of seconds for people: "850 ms", "42.3 s", "12m 05s", "3h 07m", "4d 02h"; "-" when not known.
func Span(seconds float64) string {
	switch {
	case math.IsNaN(seconds) || math.IsInf(seconds, 0):
		return "-"
	case seconds < 0:
		return "-" + Span(-seconds)
	case seconds == 0:
		return "0 s"
	case seconds < 0.9995e-3:
		return fmt.Sprintf("%.3g µs", seconds*1e6)
	case seconds < 0.9995:
		return fmt.Sprintf("%.3g ms", seconds*1e3)
	case seconds < 59.95:
		return fmt.Sprintf("%.1f s", seconds)
	}
	if seconds >= longestDecimal {
		return fmt.Sprintf("%.3g s", seconds)
	}
	minutes, s := split(seconds, 60)
	hours, m := split(math.Round(seconds/60), 60)
	days, h := split(math.Round(seconds/3600), 24)
	switch {
	case minutes < 60:
		return fmt.Sprintf("%dm %02ds", minutes, s)
	case hours < 48:
		return fmt.Sprintf("%dh %02dm", hours, m)
	default:
		return fmt.Sprintf("%dd %02dh", days, h)
	}
}

// DeviceTime words seconds of devices in hours, "916.2 h", and those of short runs as a span.
func DeviceTime(seconds float64) string {
	if seconds < 3600 {
		return Span(seconds)
	}
	return Decimal(seconds/3600, 1, " h")
}

// Count words how many there are of something: "1 node", "2 nodes".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// split is the whole units in a rounded amount, and the rest.
func split(amount float64, unit int64) (whole, rest int64) {
	n := int64(math.Round(amount))
	return n / unit, n % unit
}

// Percent words a ratio: "71.3 %"; "-" when not known.
func Percent(ratio float64) string { return Decimal(ratio*100, 1, " %") }

// longestDecimal is from where on the digits of a number say less than its size.
const longestDecimal = 1e12

// Decimal words a number with so many decimals and a unit, or with an exponent where it is huge; "-" when not known.
func Decimal(x float64, decimals int, unit string) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "-"
	}
	if math.Abs(x) >= longestDecimal {
		return fmt.Sprintf("%.3g%s", x, unit)
	}
	return fmt.Sprintf("%.*f%s", decimals, x, unit)
}
