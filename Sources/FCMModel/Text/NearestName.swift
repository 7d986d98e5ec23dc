/// Finds the known name that is closest to a misspelled one.
package enum NearestName {
    /// Returns the end of a message about an unknown name: `; did you mean …?`. Empty if no candidate is close.
    package static func hint(for name: String, among candidates: some Sequence<String>) -> String {
        self.find(name, among: candidates).map { "; did you mean \($0)?" } ?? ""
    }

    /// Returns the candidate with the fewest edits. Returns `nil` if no candidate is close.
    ///
    /// An edit changes one byte. At most two edits are allowed, or a third of the name's length if that is more. The number
    /// of edits must be smaller than the name's length. Among equally close candidates, the first in alphabetical order wins.
    static func find(_ name: String, among candidates: some Sequence<String>) -> String? {
        let length = name.utf8.count
        let allowed = min(max(2, length / 3), length - 1)
        let best = candidates.sorted()
            // A candidate needs at least as many edits as its length differs. Without this check, a name of a megabyte
            // would take half a minute.
            .filter { abs($0.utf8.count - length) <= allowed }
            .map { (candidate: $0, distance: Self.distance(name, $0)) }
            .min { $0.distance < $1.distance }
        guard let best, best.distance <= allowed else { return nil }
        return best.candidate
    }

    private static func distance(_ left: String, _ right: String) -> Int {
        let left = Array(left.utf8)
        let right = Array(right.utf8)
        var previous = Array(0...right.count)
        for (row, byte) in left.enumerated() {
            var current = [row + 1]
            for (column, other) in right.enumerated() {
                let replaced = previous[column] + (byte == other ? 0 : 1)
                current.append(min(replaced, previous[column + 1] + 1, current[column] + 1))
            }
            previous = current
        }
        return previous[right.count]
    }
}
