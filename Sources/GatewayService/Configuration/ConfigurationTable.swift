import EventLoopHTTP
import Foundation
import GatewayCore
import GatewayStorage
import GatewayTracing
import GatewayUpstream
import Logging
import RedisClient
import RedisLimits

/// All keys that an operator can set, in the order of `config show`.
///
/// A row holds everything about a key. The reader, `config check`, `config show` and reloads work from the rows;
/// `deploy/gateway.example.yaml` and the page `docs/operations/configuration.md` are checked against them.
package enum ConfigurationTable {
    package static let keys: [ConfigurationKey] =
        Self.general + Self.http + Self.admin + Self.storeAndLimits + Self.upstream + Self.batches + Self.audit
        + Self.log + Self.tracing

    typealias Key = ConfigurationKey

    // A row has a line or two; the formatter would use a line per column.

    // swift-format-ignore
    private static let general: [Key] = [
        Key("dataDir", \.dataDir, .text("path", problem: Self.emptiness),
            "the directory of the gateway's own files; created if it is missing"),
        Key("eventLoops", \.eventLoops, .wholeNumber(1...1_024), "threads that serve requests"),
        Key("masterKey", \.masterKey, Self.masterKey, "seals everything secret in the store"),
        Key("previousMasterKey", \.previousMasterKey, Self.masterKey,
            "the previous master key, only during a change of the key"),
    ]

    // swift-format-ignore
    private static let http: [Key] =
        Self.listener("http", \.http.server, \.http.tls) + [
            Key("http.maxInFlight", \.http.maxInFlight, .wholeNumber(1...1_000_000),
                "requests in flight; a list by HTTP v1 counts once for each call in flight, 100 at most"),
            // The largest allowed body must fit.
            Key("http.maxBufferedBytes", \.http.server.maxBufferedBytes, .wholeNumber((1 << 20)...(64 << 30)),
                "bytes of request bodies held at once"),
            // A turn of the loop may take two milliseconds in normal operation.
            Key("http.maxLagMs", \.http.maxLag, .milliseconds(3...60_000),
                "the longest time that a request waits for an overloaded event loop before it is refused"),
            Key("http.drainGraceMs", \.http.drainGrace, .milliseconds(0...300_000),
                "the time after SIGTERM for which requests are still accepted, while `/readyz` fails"),
            Key("http.shutdownTimeoutMs", \.http.shutdownTimeout, .milliseconds(1_000...600_000),
                "the time after `drainGraceMs` that running requests have to end"),
        ]

    // swift-format-ignore
    private static let admin: [Key] =
        Self.listener("admin", \.admin.server, \.admin.tls) + [
            Key("admin.allowedHosts", \.admin.allowedHosts,
                .hosts("hosts, without a port", problem: Self.plainHostProblem),
                "names that requests may use for the listener, besides `admin.host`, `localhost` and any "
                + "address; a request that names another host gets 421"),
            Key("admin.console", \.admin.servesConsole, .flag, "whether the listener has the console, at `/console`"),
            Key("admin.docsDirectory", \.admin.docsDirectory, .text("a folder"),
                "the folder of the manual that the listener shows at `/docs`"),
            Key("admin.token", \.admin.token, Self.adminToken, "the operators' token"),
        ]

    // swift-format-ignore
    private static let storeAndLimits: [Key] = [
        Key("store.url", \.storeURL,
            .text("`sqlite:` and a path, or `postgres://` and what libpq takes", problem: Self.storeProblem),
            "the store: one file, relative to `dataDir`, or a database of a PostgreSQL"),
        Key("store.password", \.store.password, Self.storePassword,
            "the password of PostgreSQL's user, unless libpq finds it by itself"),
        Key("store.poolSize", \.store.poolSize, .wholeNumber(4...100), "connections to PostgreSQL"),
        Key("store.migrate", \.store.migrates, .flag,
            "true if `serve` migrates PostgreSQL's schema; SQLite's is always migrated"),
        Key("store.leaseMs", \.store.lease, .milliseconds(2_000...60_000),
            "a replica's lease of an idempotency key or device group; more than twice `upstream.timeoutMs`"),
        Key("store.maxStaleMs", \.store.maxStale, .milliseconds(5_000...86_400_000),
            "the longest time that keys are accepted from memory while a store of several replicas is unreachable"),
        Key("limits.redisUrl", \.limits.redisURL,
            .text("`redis://`, `rediss://` or `redis+sentinel://`, then the address", problem: Self.redisProblem),
            "the Redis or Valkey server that replicas of one PostgreSQL share for limits; none for limits in each "
            + "replica's memory"),
        Key("limits.redisPassword", \.limits.redisPassword, Self.redisPassword, "the password of the Redis server"),
        Key("limits.redisCaFile", \.limits.redisCAFile, .file,
            "PEM authorities of the Redis server's certificate, in place of the system's"),
        Key("limits.redisTimeoutMs", \.limits.redisTimeout, .milliseconds(1...1_000),
            "the timeout of one decision; a server that exceeds it counts as failing"),
        Key("limits.whenRedisFails", \.limits.whenRedisFails, .choice,
            "the rule while the Redis server fails: each replica allows its share, everything is allowed, or "
            + "everything is refused"),
        Key("limits.perReplica", \.limits.perReplica, .flag,
            "true if each replica on PostgreSQL may allow the full limits by itself; on PostgreSQL, `serve` "
            + "needs this or `limits.redisUrl`"),
        Key("limits.defaults.device", \.limits.device, .policies,
            "messages to one device, of tenants that have no limits of their own", reloads: true),
        Key("limits.defaults.deviceCollapsible", \.limits.deviceCollapsible, .policies,
            "messages with a `collapse_key` to one device, in addition to `limits.defaults.device`", reloads: true),
        Key("limits.defaults.topic", \.limits.topic, .policies, "messages to one topic", reloads: true),
        Key("limits.defaults.tenant", \.limits.tenant, .policies, "all messages of a tenant", reloads: true),
    ]

    // swift-format-ignore
    private static let upstream: [Key] = [
        Key("upstream.legacyEndpoint", \.upstream.legacyEndpoint, Self.endpoint, "FCM's server of the legacy protocol"),
        Key("upstream.v1Endpoint", \.upstream.v1Endpoint, Self.endpoint, "FCM's server of the HTTP v1 protocol"),
        Key("upstream.iidEndpoint", \.upstream.iidEndpoint, Self.endpoint, "the server of the Instance ID API"),
        Key("upstream.topicApi", \.upstream.topicAPI, .choice,
            "the API for the subscriptions of tenants that send by HTTP v1"),
        Key("upstream.allowedTokenHosts", \.upstream.allowedTokenHosts,
            .hosts("hosts, with the port unless it is 443", problem: Self.hostProblem),
            "hosts that credentials may get access tokens from; only by https, except for this machine itself "
            + "and the hosts of `allowPlainHTTP`", reloads: true),
        Key("upstream.subjectTokenHosts", \.upstream.subjectTokenHosts,
            .hosts("hosts, with the port unless it is 443", problem: Self.hostProblem),
            "hosts that external accounts may read their provider's tokens from, by https alone", reloads: true),
        Key("upstream.subjectTokenDirectory", \.upstream.subjectTokenDirectory, .file,
            "the folder of files with tokens of providers, for external accounts; none for no files", reloads: true),
        Key("upstream.metadataServer", \.upstream.metadataServer,
            .text("a host, with the port unless it is 80", problem: { $0.isEmpty ? nil : Self.hostProblem($0) }),
            "the metadata server whose machine's identity tenants may send by, `metadata.google.internal`; none for "
            + "no such credential"),
        Key("upstream.allowPlainHTTP", \.upstream.allowPlainHTTP,
            .hosts("hosts, without a port", problem: Self.plainHostProblem),
            "hosts that may receive server keys, access tokens and assertions by plain http, for "
            + "`upstream.*Endpoint`, credentials' endpoints and `token_uri`; this machine itself is always allowed"),
        Key("upstream.proxyUrl", \.upstream.proxyURL,
            .text("`http://HOST:PORT` or `http://USER@HOST:PORT`", problem: Self.proxyProblem),
            "the HTTP proxy that calls to FCM and for access tokens leave by (`CONNECT`); none for direct calls"),
        Key("upstream.proxyPassword", \.upstreamProxyPassword, Self.redisPassword, "the password of the proxy's user"),
        Key("upstream.noProxy", \.upstream.noProxy,
            .hosts("hosts, which stand for their subdomains too, and addresses", problem: Self.plainHostProblem),
            "servers that are called without the proxy"),
        Key("upstream.caFile", \.upstream.caFile, .file, "PEM authorities of upstream servers, besides the system's"),
        Key("upstream.timeoutMs", \.upstream.timeout, .milliseconds(100...600_000),
            "the timeout of one attempt; at most `deadlineMs`", reloads: true),
        Key("upstream.deadlineMs", \.upstream.deadline, .milliseconds(100...600_000),
            "the longest wait of a caller", reloads: true),
        Key("upstream.connectTimeoutMs", \.upstream.connectTimeout, .milliseconds(10...60_000),
            "the timeout of a connection attempt; at most `timeoutMs`"),
        Key("upstream.maxConnectionsPerLoop", \.upstream.maxConnectionsPerLoop, .wholeNumber(1...10_000),
            "connections of one event loop to one server; fewer if descriptors run short"),
    ]

    // swift-format-ignore
    private static let batches: [Key] = [
        Key("batches.share", \.batches.share, .ratio,
            "the share of a tenant's limit that its batches use; the rest is left for other sends"),
        Key("batches.fanoutGapMs", \.batches.fanOutGap, .milliseconds(0...600_000),
            "the time between two sends of a tenant's batches to topics or conditions"),
        Key("batches.retentionDays", \.batches.retentionDays, .wholeNumber(1...30),
            "the time that finished batches and their results are kept, in days"),
        Key("batches.resumeAfterFailover", \.batches.resumesAfterFailover, .flag,
            "true if batches continue by themselves after a standby of PostgreSQL has taken over"),
    ]

    // swift-format-ignore
    private static let audit: [Key] = [
        Key("audit.mode", \.audit.mode, .choice, "`strict` makes a send wait until its record is on disk"),
        Key("audit.retentionDays", \.audit.retentionDays, .wholeNumber(1...36_500),
            "the time that records are kept, in days"),
        Key("audit.checkpointIntervalMs", \.audit.checkpointInterval, .milliseconds(100...600_000),
            "the interval at which new records are signed"),
        Key("audit.sink", \.audit.sink, .text("`stdout`, or `file:` and a path", problem: Self.sinkProblem),
            "a second place for all records; a file's path is relative to `dataDir`"),
        Key("audit.flushIntervalMs", \.audit.flushInterval, .milliseconds(1...1_000),
            "the time for which records are collected before a write; a killed process may lose them"),
        Key("audit.commitTimeoutMs", \.audit.commitTimeout, .milliseconds(100...60_000),
            "the longest wait of operators' changes, and of sends in strict mode, for their record; from 2,000 on, "
            + "`/readyz` also fails once nothing could be recorded for this long"),
        Key("audit.spoolAfterMs", \.audit.spoolAfter, .milliseconds(10...60_000),
            "the longest write to the store before records go to the spool"),
        Key("audit.queueRecords", \.audit.queueRecords, .wholeNumber(100...1_000_000),
            "records that may wait for the disk; beyond this number, sends are refused"),
        Key("audit.queueBytes", \.audit.queueBytes, .wholeNumber((1 << 20)...(4 << 30)),
            "bytes of records that may wait for the disk; beyond this number, sends are refused"),
        Key("audit.spoolDir", \.audit.spoolDir, .text("path"),
            "the directory for records while the store fails, relative to `dataDir`; none for `dataDir` itself"),
        Key("audit.spoolBytes", \.audit.spoolBytes, .wholeNumber((1 << 20)...(64 << 30)),
            "bytes of records that may wait in the spool; beyond this number, sends are refused"),
    ]

    // swift-format-ignore
    private static let log: [Key] =
        [Key("log.level", \.log.level, .choice, "the least severe level that is logged", reloads: true)]
        + LogConfiguration.Part.allCases.map { part in
            Key("log.levels.\(part.rawValue)", \.log.levels[part], .optionalChoice(),
                "the least severe level that this part logs; none for that of `log.level`", reloads: true)
        } + [
            Key("log.format", \.log.format, .choice, "the form of a line"),
        ]

    // swift-format-ignore
    private static let tracing: [Key] = [
        Key("tracing.propagate", \.tracing.propagation, .choice, "the callers' traces that are passed to FCM"),
        Key("tracing.otlpEndpoint", \.tracing.otlpEndpoint,
            .text("`http://` or `https://`, host, port and path", problem: OTLPReceiver.problem),
            "the receiver of spans: a base URL, to which `/v1/traces` is added, for OTLP over HTTP with JSON; "
            + "without it, no spans are recorded"),
        Key("tracing.otlpHeaders", \.tracing.otlpHeaders, Self.receiverFields,
            "header fields for the receiver of spans, such as `Authorization`, percent-encoded"),
        Key("tracing.caFile", \.tracing.caFile, .file,
            "PEM authorities of the receiver's certificate, besides the system's"),
        Key("tracing.sampleRatio", \.tracing.sampleRatio, .ratio,
            "the share of requests to trace if the caller sends no trace; a caller's trace is recorded if it is "
            + "sampled"),
    ]

    static let keysByPath = Dictionary(uniqueKeysWithValues: Self.keys.map { ($0.path, $0) })

    /// The paths that contain other keys.
    static let sections = Set(
        Self.keys.flatMap { key in
            let components = key.path.split(separator: ".")
            return (1..<max(components.count, 1)).map { components.prefix($0).joined(separator: ".") }
        }
    )

    // swift-format-ignore
    private static func listener(
        _ name: String,
        _ server: any WritableKeyPath<GatewayConfiguration, HTTPServerConfiguration> & Sendable,
        _ tls: any WritableKeyPath<GatewayConfiguration, GatewayConfiguration.TLSFiles> & Sendable
    ) -> [Key] {
        [
            Key("\(name).host", in: server, \.host, .text("address", problem: Self.emptiness),
                "the address to listen on"),
            Key("\(name).port", in: server, \.port, .wholeNumber(0...65_535),
                "the port, different from the other listener's; 0 means any free port"),
            Key("\(name).tls.certificateFile", in: tls, \.certificateFile, .file,
                "PEM certificate chain, leaf first; none for plain HTTP", reloads: true),
            Key("\(name).tls.privateKeyFile", in: tls, \.privateKeyFile, .file,
                "PEM private key of the certificate", reloads: true),
            Key("\(name).tls.clientCaFile", in: tls, \.clientCAFile, .file,
                "PEM authorities of clients' certificates; none lets every client connect", reloads: true),
            Key("\(name).keepAliveTimeoutMs", in: server, \.keepAliveTimeout, .milliseconds(1_000...3_600_000),
                "the time until an idle connection is closed"),
            Key("\(name).headTimeoutMs", in: server, \.headTimeout, .milliseconds(100...60_000),
                "the timeout of a request's head"),
            Key("\(name).bodyTimeoutMs", in: server, \.bodyTimeout, .milliseconds(100...600_000),
                "the timeout of a request's body"),
            Key("\(name).writeStallTimeoutMs", in: server, \.writeStallTimeout, .milliseconds(100...600_000),
                "the timeout of a caller that does not read its answer"),
            Key("\(name).maxConnections", in: server, \.maxConnections, .wholeNumber(1...1_000_000),
                "connections at once; fewer if descriptors run short"),
        ]
    }

    // MARK: Text values

    private static let emptiness: @Sendable (String) -> String? = { $0.isEmpty ? "must not be empty" : nil }

    /// The message does not repeat the text, which may hold a password.
    @Sendable private static func redisProblem(_ text: String) -> String? {
        guard !text.isEmpty else { return nil }
        do throws(RedisLocation.Fault) {
            _ = try RedisLocation(text)
            return nil
        } catch {
            return error.message
        }
    }

    private static let receiverFields = ConfigurationKey.Format<String, Redacted<String>?>
        .secret("a list of `name=value`", problem: OTLPReceiver.fieldsProblem, value: { $0 }, text: { $0 })

    private static let redisPassword = ConfigurationKey.Format<String, Redacted<String>?>
        .secret("text", problem: { $0.isEmpty ? "must not be empty" : nil }, value: { $0 }, text: { $0 })

    private static let masterKey = ConfigurationKey.Format<String, Redacted<[UInt8]>?>
        .secret(
            "base64 of 32 bytes",
            problem: { text in
                let count = Data(base64Encoded: text)?.count
                guard count != MasterKey.byteCount else { return nil }
                let found = count.map { "of \($0)" } ?? "other text of \(text.utf8.count) characters"
                return "must be base64 of exactly \(MasterKey.byteCount) bytes, not \(found); "
                    + "openssl rand -base64 \(MasterKey.byteCount) prints one"
            },
            value: { Data(base64Encoded: $0).map { [UInt8]($0) } },
            text: { Data($0).base64EncodedString() }
        )

    /// At least as many characters as 24 random bytes have in base64.
    private static let adminToken = ConfigurationKey.Format<String, Redacted<String>?>
        .secret(
            "32 visible ASCII characters or more",
            problem: { text in
                guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
                    return "must be visible ASCII characters without spaces, because it is sent in a header"
                }
                return text.utf8.count < 32 ? "must have at least 32 characters" : nil
            },
            value: { $0 },
            text: { $0 }
        )

    private static let storePassword = ConfigurationKey.Format<String, Redacted<String>?>
        .secret(
            "text",
            problem: { $0.utf8.contains(0) ? "must not hold a zero byte" : nil },
            value: { $0 },
            text: { $0 }
        )

    /// Returns the reason that a store's address can't be used. Does not repeat the address, because an address of
    /// another kind of store may hold a password.
    @Sendable package static func storeProblem(_ text: String) -> String? {
        if PostgreSQLSettings.isAddress(text) { return PostgreSQLSettings.problem(text) }
        guard text.hasPrefix(GatewayConfiguration.sqliteScheme) else {
            return "must be sqlite:PATH or postgres://USER@HOST/DATABASE"
        }
        let path = text.dropFirst(GatewayConfiguration.sqliteScheme.count)
        return if path.isEmpty || path.hasSuffix("/") {
            "names no file after sqlite:"
        } else if path.hasPrefix(":") {
            "a store in memory would lose tenants and audit records; name a file"
        } else if path.hasPrefix("//"), !path.hasPrefix("///") {
            "write sqlite:PATH, without a host"
        } else {
            nil
        }
    }

    @Sendable private static func sinkProblem(_ text: String) -> String? {
        if text.isEmpty || text == AuditLog.Configuration.sinkOutput { return nil }
        guard text.hasPrefix(AuditLog.Configuration.sinkFileScheme) else {
            return "must be stdout, or file: and a path"
        }
        let path = text.dropFirst(AuditLog.Configuration.sinkFileScheme.count)
        return path.isEmpty || path.hasSuffix("/") ? "names no file after file:" : nil
    }

    private static let endpoint = ConfigurationKey.Format.text(
        "scheme, host and port, no path",
        problem: { text in
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
        },
        value: { $0.hasSuffix("/") ? String($0.dropLast()) : $0 }
    )

    /// Does not repeat the address, because it may hold a password.
    @Sendable private static func proxyProblem(_ text: String) -> String? {
        !text.isEmpty && HTTPProxy(text) == nil
            ? "must be http://HOST:PORT or http://USER@HOST:PORT; the password belongs in "
                + ConfigurationKey.variable("upstream.proxyPassword") : nil
    }

    @Sendable private static func hostProblem(_ text: String) -> String? {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let isPort = parts.count == 1 || Int(parts[1]).map { (1...65_535).contains($0) } == true
        return Self.isHostName(parts[0]) && isPort ? nil : "\"\(text)\" is not a host name with an optional port"
    }

    @Sendable private static func plainHostProblem(_ text: String) -> String? {
        let isAddress = text.hasPrefix("[") && HTTPOrigin("http://\(text)") != nil && text.hasSuffix("]")
        return Self.isHostName(text[...]) || isAddress
            ? nil : "\"\(text)\" is not a host's name or address without a port"
    }

    private static func isHostName(_ text: Substring) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."):
                    true
                default:
                    false
                }
            }
    }
}
