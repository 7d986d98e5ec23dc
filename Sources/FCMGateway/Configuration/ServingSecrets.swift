/// The secrets without which the gateway does not start.
struct ServingSecrets: Sendable {
    /// The key that seals all other secrets, 32 bytes.
    let masterKey: Redacted<[UInt8]>

    /// The master key before it, while something may still be sealed by that.
    var previousMasterKey: Redacted<[UInt8]>?

    /// The operators' token.
    let adminToken: Redacted<String>
}
