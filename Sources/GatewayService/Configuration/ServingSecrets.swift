/// The secrets without which the gateway does not start.
package struct ServingSecrets: Sendable {
    /// The key that seals all other secrets, 32 bytes.
    package let masterKey: Redacted<[UInt8]>

    /// The master key before it, while something may still be sealed by that.
    package var previousMasterKey: Redacted<[UInt8]>?

    /// The operators' token.
    package let adminToken: Redacted<String>

    package init(
        masterKey: Redacted<[UInt8]>,
        previousMasterKey: Redacted<[UInt8]>? = nil,
        adminToken: Redacted<String>
    ) {
        self.masterKey = masterKey
        self.previousMasterKey = previousMasterKey
        self.adminToken = adminToken
    }
}
