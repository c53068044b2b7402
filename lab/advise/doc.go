// Package advise chooses a composition for a cluster and a trace.
//
// Candidates are compared on windows of the trace by successive halving: all of them on few windows, the better half on more, and so
// on. Those that are left are judged on held-out windows, which had no part in the choice. The engine is that of
// package study: every run is kept, and what is chosen depends on the trace, the candidates and the program only.
//
// The idea is that of Jamieson and Talwalkar, Non-stochastic best arm identification (AISTATS 2016). Here windows are common to the
// candidates, so that differences are paired; those that offer the most load come first, for they separate candidates; and
// candidates whose outcomes are equal to the bit take one place together.
package advise
