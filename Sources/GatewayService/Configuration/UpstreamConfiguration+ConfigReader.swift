import Configuration
import EventLoopHTTP
import Foundation
import GatewayCore

extension UpstreamConfiguration {
    /// Reads the section `upstream`.
    ///
    /// - `upstream.legacyEndpoint`, `upstream.v1Endpoint` (base URL, default `https://fcm.googleapis.com`).
    /// - `upstream.iidEndpoint` (base URL, default `https://iid.googleapis.com`).
    /// - `upstream.topicApi` (`v1` or `iid`, default `v1`).
    /// - `upstream.allowedTokenHosts` (list of hosts, default Google's three).
    /// - `upstream.allowPlainHTTP` (list of hosts, default none).
    /// - `upstream.caFile` (path, default none).
    /// - `upstream.timeoutMs` (ms, 100–600,000, default 10,000), at most `deadlineMs`.
    /// - `upstream.deadlineMs` (ms, 100–600,000, default 20,000).
    /// - `upstream.connectTimeoutMs` (ms, 10–60,000, default 2,000), at most `timeoutMs`.
    /// - `upstream.maxConnectionsPerLoop` (1–10,000, default 256).
    ///
    /// - Parameter reader: The root reader, whose last provider holds the defaults.
    /// - Throws: Everything wrong with the section.
    init(reader: ConfigReader) throws(ConfigurationProblems) {
        self.init()
        var section = SectionReader(reader, section: "upstream")
        section.text("legacyEndpoint", into: &self.legacyEndpoint, check: Self.endpointProblem)
        section.text("v1Endpoint", into: &self.v1Endpoint, check: Self.endpointProblem)
        section.text("iidEndpoint", into: &self.iidEndpoint, check: Self.endpointProblem)
        section.choice("topicApi", into: &self.topicAPI)
        section.textList("allowedTokenHosts", into: &self.allowedTokenHosts, check: Self.hostProblem)
        section.textList("allowPlainHTTP", into: &self.allowPlainHTTP, check: Self.plainHostProblem)
        var caFile = ""
        section.text("caFile", into: &caFile)
        self.caFile = caFile.isEmpty ? nil : caFile
        section.milliseconds("timeoutMs", in: 100...600_000, into: &self.timeout)
        section.milliseconds("deadlineMs", in: 100...600_000, into: &self.deadline)
        section.milliseconds("connectTimeoutMs", in: 10...60_000, into: &self.connectTimeout)
        section.wholeNumber("maxConnectionsPerLoop", in: 1...10_000, into: &self.maxConnectionsPerLoop)

        self.legacyEndpoint = Self.withoutTrailingSlash(self.legacyEndpoint)
        self.v1Endpoint = Self.withoutTrailingSlash(self.v1Endpoint)
        self.iidEndpoint = Self.withoutTrailingSlash(self.iidEndpoint)
        self.allowedTokenHosts = self.allowedTokenHosts.map { $0.lowercased() }
        self.allowPlainHTTP = self.allowPlainHTTP.map { $0.lowercased() }
        let plainHTTP = PlainHTTP(hosts: self.allowPlainHTTP)
        let endpoints = [
            ("legacyEndpoint", self.legacyEndpoint), ("v1Endpoint", self.v1Endpoint), ("iidEndpoint", self.iidEndpoint),
        ]
        for (name, endpoint) in endpoints where !plainHTTP.admits(endpoint: endpoint) {
            section.report(name, "must be https; \(PlainHTTP.exception)")
        }
        if self.timeout > self.deadline {
            section.report("timeoutMs", or: "deadlineMs", "upstream.timeoutMs must not exceed upstream.deadlineMs")
        }
        if self.connectTimeout > self.timeout {
            section.report(
                "connectTimeoutMs",
                or: "timeoutMs",
                "upstream.connectTimeoutMs must not exceed upstream.timeoutMs"
            )
        }
        try section.finish()
    }

    private static func endpointProblem(_ text: String) -> String? {
        guard let url = URLComponents(string: text), let scheme = url.scheme, ["http", "https"].contains(scheme),
            let host = url.host, !host.isEmpty
        else {
            return "expected a URL such as https://fcm.googleapis.com"
        }
        return if url.user != nil || url.password != nil {
            "must not hold a user name or password"
        } else if !["", "/"].contains(url.path) || url.query != nil || url.fragment != nil {
            "must name a scheme, host and port only, without a path or query"
        } else if let port = url.port, !(1...65_535).contains(port) {
            "names a port outside 1 to 65535"
        } else if HTTPOrigin(text) == nil {
            "must hold a host's name in ASCII, and a port behind a colon"
        } else {
            nil
        }
    }

    private static func hostProblem(_ text: String) -> String? {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let isName = !parts[0].isEmpty && parts[0].utf8.allSatisfy(Self.isHostCharacter)
        let isPort = parts.count == 1 || Int(parts[1]).map { (1...65_535).contains($0) } == true
        return isName && isPort ? nil : "\"\(text)\" is not a host name with an optional port"
    }

    private static func plainHostProblem(_ text: String) -> String? {
        let isName = !text.isEmpty && text.utf8.allSatisfy(Self.isHostCharacter)
        let isAddress = text.hasPrefix("[") && HTTPOrigin("http://\(text)") != nil && text.hasSuffix("]")
        return isName || isAddress ? nil : "\"\(text)\" is not a host's name or address without a port"
    }

    private static func isHostCharacter(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."):
            true
        default:
            false
        }
    }

    private static func withoutTrailingSlash(_ text: String) -> String {
        text.hasSuffix("/") ? String(text.dropLast()) : text
    }
}
