package fpga

// families are all families of the Source, in the order in which they are
// searched for cards. A card found by two of them belongs to the first;
// manager, for cards of no other family, is last.
var families = []*family{&dfl, &xrt, &ami, &aws, &manager}
