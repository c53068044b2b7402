package host

import (
	"os"
	"path/filepath"
	"testing"
)

func TestInterpreterOf(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"by its path":           {"#!/opt/venv/bin/python3.12\nimport sys\n", "/opt/venv/bin/python3.12"},
		"by env":                {"#!/usr/bin/env python3\n", "python3"},
		"by env with an option": {"#!/usr/bin/env -S python3.11\n", "python3.11"},
		"another language":      {"#!/bin/sh\nexec python3.13 policy.py\n", "python3"},
		"no script":             {"\x7fELF", "python3"},
		"nothing after it":      {"#!\n", "python3"},
		"empty":                 {"", "python3"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "policy.py")
			if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := interpreterOf(path); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
	if got := interpreterOf("no/such/file"); got != "python3" {
		t.Errorf("%q of no file", got)
	}
}
