import Crypto
import FCMModel
import Foundation
import SwiftASN1
import X509

/// The files and directories of a setup. All are new, so that a failed setup can remove them.
struct SetupFiles {
    /// A user of this machine.
    struct Account {
        let user: uid_t
        let group: gid_t

        init?(named name: String) {
            // The entry belongs to the system, and is read at once.
            guard let entry = unsafe getpwnam(name) else { return nil }
            self.user = unsafe entry.pointee.pw_uid
            self.group = unsafe entry.pointee.pw_gid
        }
    }

    /// The user who runs the gateway and owns its files; `nil` for the present user.
    private let owner: Account?
    /// In the order of creation.
    private var made: [String] = []
    /// The data directory. It may have existed before, if it was empty.
    private var dataDirectory: String?

    init(owner: Account?) {
        self.owner = owner
    }

    /// Creates a directory and its parents. Leaves an existing directory unchanged.
    mutating func makeDirectory(_ path: String, mode: mode_t) throws(CommandFailure) {
        guard !FileManager.default.fileExists(atPath: path) else { return }
        let parent = URL(fileURLWithPath: path).deletingLastPathComponent().path
        if parent != path { try self.makeDirectory(parent, mode: 0o755) }
        // POSIX reads paths during the call, here and below.
        try Self.require("the directory \(path) can't be made", unsafe mkdir(path, 0o700))
        self.made.append(path)
        try Self.require("the mode of \(path) can't be set", unsafe chmod(path, mode))
    }

    /// Creates the gateway's data directory, or accepts an empty directory.
    mutating func makeDataDirectory(_ path: String) throws(CommandFailure) {
        try self.makeDirectory(path, mode: 0o700)
        self.dataDirectory = path
        try self.giveAway(path)
    }

    /// Writes a new file. Other users can't read the file before its mode is set.
    mutating func write(_ text: String, to path: String, mode: mode_t, isOwners: Bool = false) throws(CommandFailure) {
        let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        try Self.require("\(path) can't be made", descriptor)
        self.made.append(path)
        defer { close(descriptor) }
        // A write of a few kilobytes is complete unless the disk is full.
        let bytes = Array(text.utf8)
        let count = unsafe bytes.withUnsafeBytes { unsafe pwrite(descriptor, $0.baseAddress, $0.count, 0) }
        guard count < 0 || count == bytes.count else {
            throw CommandFailure("\(path) can't be written: the disk is full")
        }
        try Self.require("\(path) can't be written", count < 0 ? -1 : fsync(descriptor))
        try Self.require("the mode of \(path) can't be set", fchmod(descriptor, mode))
        if isOwners { try self.giveAway(path) }
    }

    /// Gives a file, or a directory with its content, to the user who runs the gateway.
    func giveAway(_ path: String) throws(CommandFailure) {
        guard let owner = self.owner else { return }
        let inside = (try? FileManager.default.subpathsOfDirectory(atPath: path)) ?? []
        for path in [path] + inside.map({ "\(path)/\($0)" }) {
            try Self.require(
                "\(path) can't be given to user \(owner.user)",
                unsafe lchown(path, owner.user, owner.group)
            )
        }
    }

    /// Removes everything that the setup created.
    func removeAll() {
        let files = FileManager.default
        if let directory = self.dataDirectory {
            for name in (try? files.contentsOfDirectory(atPath: directory)) ?? [] {
                try? files.removeItem(atPath: "\(directory)/\(name)")
            }
        }
        for path in self.made.reversed() { try? files.removeItem(atPath: path) }
    }

    /// Throws the words and the system's reason if a call returned a negative value.
    private static func require(_ words: @autoclosure () -> String, _ result: Int32) throws(CommandFailure) {
        let number = errno
        // The system owns the text, which is copied at once.
        guard result >= 0 else { throw CommandFailure("\(words()): \(unsafe String(cString: strerror(number)))") }
    }
}

/// A self-signed certificate for trials of TLS. Clients must be configured to trust it.
struct TestCertificate {
    /// In PEM, like the private key.
    let certificate: String
    let privateKey: String

    init(for host: String, at now: Date) throws {
        let key = P256.Signing.PrivateKey()
        let name = try DistinguishedName { CommonName(host) }
        let certificate = try Certificate(
            version: .v3,
            serialNumber: Certificate.SerialNumber(),
            publicKey: Certificate.PublicKey(key.publicKey),
            notValidBefore: now.addingTimeInterval(-3_600),
            notValidAfter: now.addingTimeInterval(365 * 86_400),
            issuer: name,
            subject: name,
            signatureAlgorithm: .ecdsaWithSHA256,
            extensions: Certificate.Extensions {
                Critical(BasicConstraints.notCertificateAuthority)
                try ExtendedKeyUsage([.serverAuth])
                SubjectAlternativeNames([.dnsName(host)])
            },
            issuerPrivateKey: Certificate.PrivateKey(key)
        )
        self.certificate = try certificate.serializeAsPEM().pemString + "\n"
        self.privateKey = key.pemRepresentation + "\n"
    }

    static func isHostName(_ text: String) -> Bool {
        let labels = text.split(separator: ".", omittingEmptySubsequences: false)
        return text.utf8.count <= 253 && Int(labels[labels.count - 1]) == nil
            && labels.allSatisfy { label in
                (1...63).contains(label.utf8.count) && label.first != "-" && label.last != "-"
                    && label.utf8.allSatisfy { $0.isLowerAlphanumeric || $0 == UInt8(ascii: "-") }
            }
    }
}
