package device

import (
	"slices"
	"strings"
)

var (
	// product is the word that names a device for servers: v100, a10g, gh200.
	product = pattern(`^[a-z]{1,2}[0-9]{1,3}[a-z]?$`)
	// variant says how one is built: its socket, its memory.
	variant = pattern(`^(sxm[0-9]?|pcie|nvl[0-9]*|fhhl|dgxs|hbm[0-9]e?|[0-9]+gb)$`)
	// card is a number of the GeForce series.
	card   = pattern(`^[0-9]{3,4}$`)
	ending = pattern(`^(ti|super)$`)
)

// TypeOf is the accelerator type that configs call a model by: h100 for "NVIDIA H100 80GB HBM3", v100 for
// "Tesla V100-SXM2-16GB", rtx3090 for "NVIDIA GeForce RTX 3090". Sockets and sizes of memory are one type, as in published
// traces. Other models keep their whole name, without NVIDIA, which old drivers leave out.
func TypeOf(model string) string {
	words := strings.FieldsFunc(strings.ToLower(model), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	if len(words) == 0 {
		return "gpu"
	}
	if len(words) > 1 && words[0] == "nvidia" {
		words = words[1:]
	}
	series, rest := words[0], words[1:]
	if series == "tesla" && len(rest) > 0 {
		series, rest = rest[0], rest[1:]
	}
	switch {
	case product().MatchString(series) && all(rest, variant().MatchString):
		return series
	case series == "geforce" && len(rest) > 1 && card().MatchString(rest[1]) && all(rest[2:], ending().MatchString):
		return strings.Join(rest, "")
	}
	return strings.Join(words, "-")
}

func all(words []string, are func(string) bool) bool {
	return !slices.ContainsFunc(words, func(word string) bool { return !are(word) })
}
