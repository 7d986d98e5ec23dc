package import GatewayCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension Secret {
    /// 32 bytes that are the same for the same name and differ between names.
    package static func sample(_ name: String) -> Secret {
        var generator = SeededGenerator(seed: SeededGenerator.seed(of: name))
        return Secret(bytes: (0..<32).map { _ in UInt8.random(in: 0...255, using: &generator) })
    }
}

extension MasterKey {
    /// A master key that is the same for the same name and differs between names.
    package static func sample(_ name: String = "master") throws -> MasterKey {
        guard let key = MasterKey(.sample(name)) else { throw SampleError(what: "master key \(name)") }
        return key
    }
}

extension V1Credential {
    /// The members of a service-account file whose key looks valid but can't sign.
    package static func sampleMembers(_ name: String = "acme") -> [String: String] {
        var generator = SeededGenerator(seed: SeededGenerator.seed(of: "key of \(name)"))
        let key = Data((0..<1_200).map { _ in UInt8.random(in: 0...255, using: &generator) }).base64EncodedString()
        return [
            "type": "service_account",
            "project_id": "\(name)-push",
            "private_key_id": "key-of-\(name)",
            "private_key": "-----BEGIN PRIVATE KEY-----\n\(key)\n-----END PRIVATE KEY-----\n",
            "client_email": "sender@\(name)-push.iam.gserviceaccount.com",
            "token_uri": "https://oauth2.googleapis.com/token",
            "universe_domain": "googleapis.com",
        ]
    }

    package static func sampleFile(_ members: [String: String] = sampleMembers()) throws -> [UInt8] {
        Array(try JSONEncoder().encode(members))
    }

    /// An account that can't sign.
    package static func sample(_ name: String = "acme", endpoint: String? = nil) throws -> V1Credential {
        try V1Credential(
            serviceAccount: Self.sampleFile(Self.sampleMembers(name)),
            endpoint: endpoint,
            allowing: .google
        )
    }
}

extension V1Credential {
    /// The key of a service account; `nil` for a credential without one.
    package var serviceAccountKey: ServiceAccountKey? {
        if case .serviceAccount(let key) = self.source { key } else { nil }
    }
}
