# The median (smallest..largest) of the lines of standard input.
median() { sort -g | awk '{ v[NR] = $1 } END { m = NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2
   printf "%.3f (%.3f..%.3f)", m, v[1], v[NR] }'; }
