// Package sim turns scenarios into the state file that the simulated native
// libraries read, and edits that file while they run. The file is the only
// truth: there is no daemon, and every edit is one atomic rename. What files
// cannot do by themselves, a mounted tree and the kubelet's socket, is served
// by whoever asks for it, and follows the file.
package sim
