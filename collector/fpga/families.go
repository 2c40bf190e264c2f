package fpga

// families are all that the Source knows, in the order in which they are asked
// for their cards. A card that two of them find is the first one's: manager, which
// takes what has no family of its own, comes last.
var families = []*family{&dfl, &xrt, &ami, &aws, &manager}
