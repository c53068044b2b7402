// Package gang drives the pods of one job to what was decided on it.
//
// A member of a gang is one pod: a fixed set of devices on one node. Its name is made of the job, the run and the number of the
// member, and is never used again: what was gone comes back under another name, so that nobody takes the new one for the old.
//
// The life of a gang. A decision gives a job seats. All members are created, none of them on a node, so that a quota, a webhook
// or a policy that refuses the last of them does so before any device is taken. Each carries a finalizer of ours, and says in
// annotations where it is to run and on which devices. When all are there, and nobody holds their devices any more, each gets its
// claim allocated, where devices are given by claims, and is bound to its node; not before, and then all of them. They pull
// their images, find each other through a headless service when they are many, and run. A later decision may keep some of the seats: their members stay, as long as the run is the same. Those
// that have no seat any more are deleted with the grace of the job. Their devices are free when the phase of the pod is final, or
// when its node is gone or out of service, and not when somebody deletes the object: that is what the finalizer is for. It is
// taken off then. A member that was lost, by whatever, stays to be seen until a decision goes on without it, for nothing else
// remembers that it was there. When a job has no seats, and nothing of it holds devices or our finalizer, it is gone. A job whose
// object was deleted is driven without seats too: its pods wait for us to take the finalizer off.
//
// What is due is computed by [Next] from what is seen, and compared by UID, never from notifications or their number. So
// every call may be repeated, and whoever drives a gang may end after any of them: the next one sees what is there and goes on.
// A call of which nobody knows whether it worked is not undone: the next look shows. A [Driver] carries out what is due.
//
// Two who drive at the same time, a leader and one that does not know yet that it is none any more, cannot give a device twice
// either, as long as the old one asks whether it still leads before each write: one write at most slips through. A pod that it
// creates is on no node. A pod that it binds was there before, and a member that is there keeps its devices from other jobs even
// before it is bound ([Book]), until it is deleted; and the API server binds no pod that was.
//
// The pods of a job may also be made by others, see [Adoption]: then they are found, given their seats, and bound in the version that
// they have then. A pod of theirs that is on no node and has no seat gets that as a condition, and is left to wait.
//
// A driver needs these rights: pods get, create, delete, patch; pods/status patch; pods/binding create; services create. With claims also
// resourceclaims get, create; resourceclaims/status update; resourceclaims/binding update (cluster-wide, since Kubernetes 1.36).
// Whoever makes looks also lists and watches pods, services and nodes, and with claims resourceclaims and resourceslices.
package gang
