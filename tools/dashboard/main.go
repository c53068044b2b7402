// Command dashboard writes the dashboard for Grafana, as a config map. It is made from what the program exposes of a run in which
// everything is known, so that every metric has a panel.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	to := flag.String("o", "", "file to write; empty for standard output")
	flag.Parse()
	if err := run(*to); err != nil {
		fmt.Fprintln(os.Stderr, "dashboard:", err)
		os.Exit(1)
	}
}

func run(to string) error {
	text, err := scrape()
	if err != nil {
		return err
	}
	families, err := read(text)
	if err != nil {
		return err
	}
	made, err := configMap(families)
	if err != nil {
		return err
	}
	if to == "" {
		_, err = os.Stdout.Write(made)
		return err
	}
	return os.WriteFile(to, made, 0o644)
}
