// Command go-backfill is a plugin of Quartet: an allocation policy that none of the built-ins is.
package main

import "github.com/quartet-sched/quartet/plugins/sdk"

func main() { sdk.Main(New()) }
