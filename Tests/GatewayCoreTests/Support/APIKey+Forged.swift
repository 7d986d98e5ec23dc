@testable import GatewayCore

extension APIKey {
    /// A key of this id and secret with the checksum that belongs to them; `nil` for a wrong form.
    static func sample(body: String) -> APIKey? {
        APIKey("\(body)_\(Base62.text(CRC32.checksum(body.utf8), width: APIKey.checksumLength))")
    }
}
