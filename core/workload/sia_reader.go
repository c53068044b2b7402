package workload

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
)

// folders lists the folders in a folder.
func folders(path string) ([]string, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, cannotRead(path, err)
	}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// readSia reads the profile of an application: APPLICATION/{placements,scalability}-PROFILE.csv for each accelerator
// type it was measured on, and validation-*.csv. It returns nil after a problem, which was then collected.
func (r *profileReader) readSia(ctx context.Context, application string, accelerators []SiaAccelerator) *siaProfile {
	p := &siaProfile{application: application}
	before := len(r.problems)
	folder := filepath.Join(r.folder, application)
	for _, a := range accelerators {
		path := filepath.Join(folder, "placements-"+a.Profile+".csv")
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue // it cannot run on this type
		}
		p.types = append(p.types, r.readSpeeds(ctx, a.Name, path, filepath.Join(folder, "scalability-"+a.Profile+".csv")))
	}
	r.readTrainings(ctx, &p.learning, folder)
	stated := p.stated(application)
	for i := range p.types {
		if s := &p.types[i]; s.least <= stated.perDevice {
			s.most = min(s.most, stated.perDevice)
		}
	}
	if len(r.problems) == before && len(p.types) == 0 {
		r.fail(folder, errors.New("no profile of the accelerators listed, such as placements-"+accelerators[0].Profile+".csv"))
	}
	if len(r.problems) > before {
		return nil
	}
	return p
}

// readSpeeds reads what was measured on one type. A batch per device that one of the two files does not reach is not
// counted on.
func (r *profileReader) readSpeeds(ctx context.Context, accelerator, placements, scalability string) siaSpeeds {
	before := len(r.problems)
	s := siaSpeeds{accelerator: accelerator}
	var points []siaPoint
	least, most := math.MaxInt, 0
	s.placements = r.readCurves(ctx, placements, func(shape uint64, batch int, time stepTime) {
		nodes, replicas := unpack(shape)
		if nodes == 1 {
			s.devicesPerNode = max(s.devicesPerNode, replicas)
		}
		points = append(points, siaPoint{nodes, replicas, batch, time})
		least, most = min(least, batch), max(most, batch)
	})
	s.least, s.most = least, most
	least, most = math.MaxInt, 0
	r.open(ctx, scalability, pointColumns, func(t *table) {
		for t.next() {
			p := siaPoint{nodes: t.count(pointNodes), replicas: t.count(pointReplicas), batch: t.count(pointBatch), time: t.stepTime(pointStep, pointSync)}
			if t.ok() {
				points = append(points, p)
				least, most = min(least, p.batch), max(most, p.batch)
			}
		}
	})
	s.least, s.most = max(s.least, least), min(s.most, most)
	switch {
	case len(r.problems) > before:
	case s.devicesPerNode == 0:
		r.fail(placements, errors.New("no placement on a single node"))
	case s.least > s.most:
		r.fail(placements, fmt.Errorf("no batch per device that %s has too", filepath.Base(scalability)))
	}
	s.beyond = levels(points)
	return s
}
