# Prints the rows that are read once a
# step.
echo "there is no such file, and x.txt is no file"
