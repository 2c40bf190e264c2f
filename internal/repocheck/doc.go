// Package repocheck holds tests of the repository as a whole: who may import
// whom, that names follow the rules, and that papers and fixtures agree with
// the code. It has no code of its own.
package repocheck
