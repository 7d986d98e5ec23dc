package import GatewayCore

extension MasterKey {
    /// The configured master key, and the one before it where that is configured.
    ///
    /// - Throws: `invalid` for a key of another length.
    package init(_ key: Redacted<[UInt8]>, previous: Redacted<[UInt8]>?) throws(GatewayError) {
        guard
            let masterKey = MasterKey(
                Secret(bytes: key.revealed),
                previous: previous.map { Secret(bytes: $0.revealed) }
            )
        else {
            throw GatewayError(.invalid, "A master key must have \(MasterKey.byteCount) bytes")
        }
        self = masterKey
    }
}
