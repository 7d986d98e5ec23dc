/// Finds the name somebody probably meant.
package enum NearestName {
    /// The candidate with the fewest edits, or nil when none is close.
    ///
    /// - Parameters:
    ///   - name: What was written.
    ///   - candidates: The names there are; ties go to the first in order.
    /// - Returns: A candidate at most a third of the name's length away.
    package static func find(_ name: String, among candidates: some Sequence<String>) -> String? {
        let length = name.count
        let allowed = max(2, length / 3)
        let best = candidates.sorted()
            // The lengths alone are that far apart; a name of a megabyte would be compared for half a minute.
            .filter { abs($0.count - length) <= allowed }
            .map { (candidate: $0, distance: Self.distance(name, $0)) }
            .min { $0.distance < $1.distance }
        guard let best, best.distance <= allowed else { return nil }
        return best.candidate
    }

    /// The Levenshtein distance: insertions, deletions and replacements of one character.
    private static func distance(_ left: String, _ right: String) -> Int {
        let left = Array(left)
        let right = Array(right)
        var previous = Array(0...right.count)
        for (row, character) in left.enumerated() {
            var current = [row + 1]
            for (column, other) in right.enumerated() {
                let replaced = previous[column] + (character == other ? 0 : 1)
                current.append(min(replaced, previous[column + 1] + 1, current[column] + 1))
            }
            previous = current
        }
        return previous[right.count]
    }
}
