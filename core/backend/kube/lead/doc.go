// Package lead lets one of several schedulers lead, and refuses the writes of one that no longer does.
//
// Who leads is in a Lease (coordination.k8s.io/v1), whose fields mean what they mean to every other program: a scheduler that
// has not seen it renewed for the lease's duration, by its own clock, takes it over with one more transition. The number of
// transitions is the epoch of the term. No two terms that opened the State have the same: identities are made unique for each
// Run, a Lease that somebody deleted begins again above the epoch that the State holds, and the State is of one term in an epoch.
//
// A term is valid while its last renewal, counted from before it was sent, is younger than the renew deadline, by the clocks
// of its holder. That is shorter than the lease, so that nobody leads yet when a term is no longer valid. A process that was
// stopped and goes on finds its term invalid at the first look. What it was about to send may still arrive late: so each write
// names the resource version that it rests on, and State refuses one of an older epoch.
//
// A leader that cannot reach the API server keeps its term when it can renew it before anybody took it over. Until then it is
// not valid.
//
// The elector of client-go is not used. Its candidates look every 1 to 2.2 retry periods, so that with a lease of 6 s and a
// retry period of 1 s up to 10.4 s pass between the end of a leader and the next; here they look four times in a retry period
// and when the lease runs out, for 6.3 s. It also gives up a term when the API server is away for longer than the renew deadline.
package lead
