// Package elastic holds what policies share that divide devices among elastic jobs: who got how many so far, by which steps a job
// grows, and the gains by which the next device is given away.
package elastic
