/// A stored value that the gateway would not have written.
struct DamagedValue: Error, Hashable, CustomStringConvertible {
    /// Which table.
    let table: String
    /// Which column.
    let column: String

    /// Names the place, not the value.
    var description: String { "unexpected value in \(self.table).\(self.column)" }
}
