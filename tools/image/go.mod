module github.com/quartet-sched/quartet/tools/image

go 1.26.0

require (
	github.com/google/go-cmp v0.7.0 // indirect
	github.com/google/go-containerregistry v0.20.6 // indirect
)
