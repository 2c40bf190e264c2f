// Package sim converts scenarios to the state file that the simulated native
// libraries read, and edits that file while they run. The state is in the file
// alone: there is no daemon, and every edit is one atomic rename. A mounted
// tree and the kubelet's socket need a process; it follows the file.
package sim
