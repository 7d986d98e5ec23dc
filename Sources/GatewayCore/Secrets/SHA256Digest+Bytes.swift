import Crypto

extension SHA256Digest {
    /// The digest's 32 bytes.
    var bytes: [UInt8] {
        // The pointer does not outlive the closure.
        unsafe self.withUnsafeBytes { unsafe Array($0) }
    }
}
