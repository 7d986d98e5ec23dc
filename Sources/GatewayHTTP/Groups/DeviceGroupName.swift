import FCMModel

/// The name of a device group in a path.
enum DeviceGroupName {
    /// The most bytes that a name has.
    static let maxBytes = 256

    /// Reads a segment of a path.
    ///
    /// - Throws: `invalid_field` for a name that no group can have.
    static func read(_ segment: String?) throws(Refusal) -> String {
        guard let name = segment.flatMap({ PercentEncoding.decoded($0.utf8) }), name.utf8.count <= Self.maxBytes,
            ValueRules.isGroupName(name)
        else {
            throw Refusal(
                .invalidField,
                """
                A device group's name has 1 to \(Self.maxBytes) bytes of UTF-8, percent-encoded, no control characters, \
                and does not begin with \(ValueRules.reservedGroupPrefix)
                """
            )
        }
        return name
    }
}
