/// A place of a chain of which a checkpoint says what stood there.
package struct AuditLandmark: Sendable, Hashable {
    /// Who says so; in words for an operator when it is printed.
    package enum Source: Sendable, Hashable, CustomStringConvertible {
        /// A checkpoint in the store, by its number.
        case checkpoint(Int)
        /// The second sink.
        case sink

        /// The words.
        package var description: String {
            switch self {
            case .checkpoint(let number): "checkpoint \(number)"
            case .sink: "the sink"
            }
        }
    }

    /// The place.
    package var sequence: Int
    /// The record's hash.
    package var hash: [UInt8]
    /// Who says so.
    package var source: Source

    /// A landmark.
    package init(sequence: Int, hash: [UInt8], source: Source) {
        (self.sequence, self.hash, self.source) = (sequence, hash, source)
    }
}
