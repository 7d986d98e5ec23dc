import Foundation
import GatewayCore
import GatewayTestKit
import Testing

@testable import GatewayService

struct ListenerCertificateTests {
    /// The problems of files, one per line; empty if they are valid.
    private static func problems(_ files: GatewayConfiguration.TLSFiles) -> String {
        do {
            _ = try ListenerCertificate(files, section: "http")
            return ""
        } catch {
            return error.description
        }
    }

    @Test("A certificate with its key is accepted, also with a client authority or as a chain")
    func good() async throws {
        try await TemporaryDirectory.with { directory in
            let authority = try TestAuthority()
            let identity = try authority.certify("gateway", dnsNames: ["localhost"])
            let files = CertificateFiles(directory: directory)
            #expect(Self.problems(try files.write(identity)) == "")
            #expect(Self.problems(try files.write(identity, clientAuthority: authority.certificate)) == "")
            let chain = TestIdentity(
                certificate: identity.certificate + "\n" + authority.certificate,
                privateKey: identity.privateKey
            )
            #expect(Self.problems(try files.write(chain)) == "")
        }
    }

    @Test(
        "A file that is missing, empty or not PEM is reported with its setting and path",
        arguments: ["certificateFile", "privateKeyFile", "clientCaFile"]
    )
    func badFile(key: String) async throws {
        try await TemporaryDirectory.with { directory in
            let authority = try TestAuthority()
            let identity = try authority.certify("gateway")
            let files = CertificateFiles(directory: directory)
            let good = try files.write(identity, clientAuthority: authority.certificate)
            let file = ["certificateFile": "server.crt", "privateKeyFile": "server.key", "clientCaFile": "clients.crt"]
            let path = "\(directory.path)/\(file[key] ?? "")"
            for content in [nil, "", "nonsense", "-----BEGIN CERTIFICATE-----\n", "-----BEGIN PRIVATE KEY-----\nAAAA"] {
                try FileManager.default.removeItem(atPath: path)
                if let content { try Data(content.utf8).write(to: URL(filePath: path)) }
                let problems = Self.problems(good)
                #expect(problems.hasPrefix("http.tls.\(key): \(path) "), "\(problems)")
                #expect(!problems.contains("\n"))
                if content == nil { try Data().write(to: URL(filePath: path)) }
            }
        }
    }

    @Test("A truncated file is refused unless it holds whole certificates")
    func truncated() async throws {
        try await TemporaryDirectory.with { directory in
            let authority = try TestAuthority()
            let identity = try authority.certify("gateway")
            let files = CertificateFiles(directory: directory)
            let chain = identity.certificate + "\n" + authority.certificate
            let leafBytes = identity.certificate.utf8.count
            for count in stride(from: leafBytes % 7, to: chain.utf8.count, by: 7) {
                let cut = String(decoding: chain.utf8.prefix(count), as: UTF8.self)
                let problems = Self.problems(
                    try files.write(TestIdentity(certificate: cut, privateKey: identity.privateKey))
                )
                // Only a cut right after the leaf leaves a whole certificate.
                #expect(problems.isEmpty == (leafBytes...leafBytes + 1).contains(count), "\(count) \(problems)")
            }
            for count in stride(from: 0, to: identity.privateKey.utf8.count - 8, by: 7) {
                let cut = String(decoding: identity.privateKey.utf8.prefix(count), as: UTF8.self)
                let problems = Self.problems(
                    try files.write(TestIdentity(certificate: identity.certificate, privateKey: cut))
                )
                #expect(problems.hasPrefix("http.tls.privateKeyFile: "), "\(count) \(problems)")
            }
        }
    }

    @Test("Another certificate's key is refused, and both files are named")
    func foreignKey() async throws {
        try await TemporaryDirectory.with { directory in
            let authority = try TestAuthority()
            let identity = TestIdentity(
                certificate: try authority.certify("gateway").certificate,
                privateKey: try authority.certify("other").privateKey
            )
            let files = try CertificateFiles(directory: directory).write(identity)
            let problems = Self.problems(files)
            #expect(problems.hasPrefix("http.tls.privateKeyFile: "))
            #expect(["server.key", "server.crt"].allSatisfy { problems.contains("\(directory.path)/\($0)") })
        }
    }

    @Test("Problems of both listeners are reported together")
    func bothListeners() throws {
        var configuration = GatewayConfiguration()
        configuration.http.tls = GatewayConfiguration.TLSFiles(certificateFile: "/none/a", privateKeyFile: "/none/b")
        configuration.admin.tls = GatewayConfiguration.TLSFiles(certificateFile: "/none/c", privateKeyFile: "/none/d")
        let error = #expect(throws: ConfigurationProblems.self) { try ListenerCertificates(configuration) }
        #expect(error?.problems.map(\.key) == ["http.tls.certificateFile", "admin.tls.certificateFile"])
    }

    @Test("A certificate is reported before its validity begins and after it ends")
    func time() async throws {
        try await TemporaryDirectory.with { directory in
            let identity = try TestAuthority().certify("gateway", validity: -1_000..<1_000)
            let files = try CertificateFiles(directory: directory).write(identity)
            let certificate = try #require(try ListenerCertificate(files, section: "admin"))
            let now = SystemWallClock().now()
            #expect(certificate.untimeliness(at: now) == nil)
            let late = certificate.untimeliness(at: now.advanced(by: .seconds(2_000)))
            #expect(
                late?.description
                    == "admin.tls.certificateFile: the certificate in \(directory.path)/server.crt expired"
            )
            let early = certificate.untimeliness(at: now.advanced(by: .seconds(-2_000)))
            #expect(early?.message.hasSuffix("is not valid yet") == true)
        }
    }
}
