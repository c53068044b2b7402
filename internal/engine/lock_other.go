//go:build !(linux || darwin || freebsd || netbsd || openbsd)

package engine

import "os"

// lockFolder takes no lock here: what a killed run left is taken for that of one that lives.
func lockFolder(string) (lock *os.File, busy bool, err error) { return nil, false, nil }
