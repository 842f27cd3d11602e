int  two_spaces;

int good() { return 1; }
int* pointer;
int *other_pointer;
