// Package archtest holds the rules that the compiler cannot: imports point one way, nothing registers itself, and what
// decides reads neither the clock nor a random stream that everyone shares.
package archtest
