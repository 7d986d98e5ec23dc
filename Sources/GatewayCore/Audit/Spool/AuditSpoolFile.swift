/// A file in which audit records wait for a store that fails.
///
/// One writer at a time uses it; what was written may be read meanwhile.
package protocol AuditSpoolFile: Sendable {
    /// Its size in bytes.
    ///
    /// - Throws: `storeUnavailable`.
    func size() async throws(GatewayError) -> Int

    /// Bytes from an offset on; fewer at the end.
    ///
    /// - Throws: `storeUnavailable`.
    func read(at offset: Int, count: Int) async throws(GatewayError) -> [UInt8]

    /// Writes bytes from an offset on and returns when they are on the disk.
    ///
    /// - Throws: `storeUnavailable`; then there may be something behind the offset, which is to be dropped.
    func write(_ bytes: [UInt8], at offset: Int) async throws(GatewayError)

    /// Drops everything from an offset on.
    ///
    /// - Throws: `storeUnavailable`.
    func cut(to size: Int) async throws(GatewayError)

    /// Moves the content to a file beside it, for somebody to look at, and goes on with an empty one.
    ///
    /// - Parameter suffix: what is added to the name.
    /// - Returns: where the content is now.
    /// - Throws: `storeUnavailable`.
    func setAside(_ suffix: String) async throws(GatewayError) -> String
}
