/// Every key an operator can set, in the order `config show` prints them.
///
/// Paths, types and secrecy are decided here; defaults come from the sections' initialisers, ranges from their readers.
package enum ConfigurationSchema {
    /// The keys.
    package static let keys: [ConfigurationKey] = {
        let value = GatewayConfiguration()
        return [
            ConfigurationKey("dataDir", .text(value.dataDir), "the directory of the gateway's own files"),
            ConfigurationKey("eventLoops", .wholeNumber(value.eventLoops), "event loops that serve requests"),
            ConfigurationKey("masterKey", .secret, "base64 of the 32 bytes that seal all other secrets"),
            ConfigurationKey("previousMasterKey", .secret, "the master key before it, while that is being changed"),
        ] + Self.http(value.http) + Self.admin(value.admin) + [
            ConfigurationKey("store.url", .text(value.store.url), "sqlite: and a path, relative to dataDir")
        ] + Self.limits(value.limits.defaults) + Self.upstream(value.upstream) + Self.audit(value.audit) + [
            ConfigurationKey(
                "log.level",
                .text(value.log.level.rawValue),
                "the least severe level that is logged",
                isReloadable: true
            )
        ] + Self.logLevels() + [
            ConfigurationKey("log.format", .text(value.log.format.rawValue), "json or text"),
            ConfigurationKey(
                "tracing.propagate",
                .text(value.tracing.propagate.rawValue),
                "all or none: which upstream servers are told of the traces that requests belong to"
            ),
        ]
    }()

    /// The keys by path.
    static let keysByPath = Dictionary(uniqueKeysWithValues: Self.keys.map { ($0.path, $0) })

    /// The paths that hold further keys.
    static let sections: Set<String> = {
        var sections: Set<String> = []
        for key in Self.keys {
            let components = key.components
            for count in 1..<max(components.count, 1) {
                sections.insert(components.prefix(count).joined(separator: "."))
            }
        }
        return sections
    }()

    /// The variables that set a key.
    static let variables = Set(Self.keys.flatMap(\.variables))

    private static func http(_ value: HTTPListenerConfiguration) -> [ConfigurationKey] {
        func milliseconds(_ name: String, _ duration: Duration, _ doc: String) -> ConfigurationKey {
            ConfigurationKey("http.\(name)", .wholeNumber(duration.wholeMilliseconds), doc)
        }
        return [
            ConfigurationKey("http.host", .text(value.host), "the data listener's address"),
            ConfigurationKey("http.port", .wholeNumber(value.port), "the data listener's port"),
        ] + Self.tls("http") + Self.bounds("http", value.bounds) + [
            ConfigurationKey("http.maxInFlight", .wholeNumber(value.maxInFlight), "requests in flight at once"),
            ConfigurationKey(
                "http.maxBufferedBytes",
                .wholeNumber(value.maxBufferedBytes),
                "bytes of request bodies held at once"
            ),
            milliseconds("maxLagMs", value.maxLag, "how far an event loop may be behind before it sheds load"),
            milliseconds("drainGraceMs", value.drainGrace, "how long SIGTERM still accepts requests"),
            milliseconds("shutdownTimeoutMs", value.shutdownTimeout, "how long requests may take to finish then"),
        ]
    }

    private static func admin(_ value: AdminListenerConfiguration) -> [ConfigurationKey] {
        [
            ConfigurationKey("admin.host", .text(value.host), "the admin listener's address"),
            ConfigurationKey("admin.port", .wholeNumber(value.port), "the admin listener's port"),
        ] + Self.tls("admin") + Self.bounds("admin", value.bounds) + [
            ConfigurationKey("admin.token", .secret, "the operators' token, at least 32 characters")
        ]
    }

    private static func bounds(_ section: String, _ value: ConnectionBoundsConfiguration) -> [ConfigurationKey] {
        func milliseconds(_ name: String, _ duration: Duration, _ doc: String) -> ConfigurationKey {
            ConfigurationKey("\(section).\(name)", .wholeNumber(duration.wholeMilliseconds), doc)
        }
        return [
            milliseconds("keepAliveTimeoutMs", value.keepAliveTimeout, "how long an idle connection is kept"),
            milliseconds("headTimeoutMs", value.headTimeout, "how long a request's head may take"),
            milliseconds("bodyTimeoutMs", value.bodyTimeout, "how long a request's body may take"),
            milliseconds("writeStallTimeoutMs", value.writeStallTimeout, "how long an answer may wait for its reader"),
            ConfigurationKey(
                "\(section).maxConnections",
                .wholeNumber(value.maxConnections),
                "connections held at once"
            ),
        ]
    }

    private static func tls(_ section: String) -> [ConfigurationKey] {
        [
            ConfigurationKey(
                "\(section).tls.certificateFile",
                .text(""),
                "PEM certificate chain, leaf first",
                isReloadable: true
            ),
            ConfigurationKey("\(section).tls.privateKeyFile", .text(""), "PEM private key", isReloadable: true),
            ConfigurationKey(
                "\(section).tls.clientCaFile",
                .text(""),
                "PEM authorities of client certificates",
                isReloadable: true
            ),
        ]
    }

    private static func limits(_ value: RateLimitDefaultsConfiguration) -> [ConfigurationKey] {
        [
            ConfigurationKey("limits.redisUrl", .text(""), "not supported yet"),
            ConfigurationKey(
                "limits.defaults.device",
                .policies(value.device),
                "messages to one device",
                isReloadable: true
            ),
            ConfigurationKey(
                "limits.defaults.deviceCollapsible",
                .policies(value.deviceCollapsible),
                "messages with a collapse_key to one device",
                isReloadable: true
            ),
            ConfigurationKey(
                "limits.defaults.topic",
                .policies(value.topic),
                "messages to one topic",
                isReloadable: true
            ),
            ConfigurationKey(
                "limits.defaults.tenant",
                .policies(value.tenant),
                "all messages of one tenant",
                isReloadable: true
            ),
        ]
    }

    private static func upstream(_ value: UpstreamConfiguration) -> [ConfigurationKey] {
        func milliseconds(
            _ name: String,
            _ duration: Duration,
            _ doc: String,
            isReloadable: Bool = false
        ) -> ConfigurationKey {
            ConfigurationKey(
                "upstream.\(name)",
                .wholeNumber(duration.wholeMilliseconds),
                doc,
                isReloadable: isReloadable
            )
        }
        return [
            ConfigurationKey("upstream.legacyEndpoint", .text(value.legacyEndpoint), "the legacy protocol's base URL"),
            ConfigurationKey("upstream.v1Endpoint", .text(value.v1Endpoint), "the HTTP v1 protocol's base URL"),
            ConfigurationKey("upstream.iidEndpoint", .text(value.iidEndpoint), "the Instance ID service's base URL"),
            ConfigurationKey(
                "upstream.topicApi",
                .text(value.topicAPI.rawValue),
                "v1 or iid: what keeps the subscriptions of tenants that send by HTTP v1"
            ),
            ConfigurationKey(
                "upstream.allowedTokenHosts",
                .textList(value.allowedTokenHosts),
                "hosts a credential's token_uri may name",
                isReloadable: true
            ),
            ConfigurationKey(
                "upstream.allowPlainHTTP",
                .textList(value.allowPlainHTTP),
                "hosts that secrets may go to by plain http, besides this machine itself"
            ),
            ConfigurationKey(
                "upstream.caFile",
                .text(value.caFile ?? ""),
                "PEM authorities of upstream servers, besides the system's"
            ),
            milliseconds("timeoutMs", value.timeout, "how long one attempt may take", isReloadable: true),
            milliseconds("deadlineMs", value.deadline, "how long all attempts of a call may take", isReloadable: true),
            milliseconds("connectTimeoutMs", value.connectTimeout, "how long connecting may take"),
            ConfigurationKey(
                "upstream.maxConnectionsPerLoop",
                .wholeNumber(value.maxConnectionsPerLoop),
                "connections of one event loop to one endpoint"
            ),
        ]
    }

    private static func logLevels() -> [ConfigurationKey] {
        LogPart.allCases.map { part in
            ConfigurationKey(
                "log.levels.\(part.rawValue)",
                .text(""),
                "the least severe level of this part that is logged; empty for log.level",
                isReloadable: true
            )
        }
    }

    private static func audit(_ value: AuditConfiguration) -> [ConfigurationKey] {
        [
            ConfigurationKey("audit.mode", .text(value.mode.rawValue), "bounded or strict"),
            ConfigurationKey("audit.retentionDays", .wholeNumber(value.retentionDays), "days records are kept"),
            ConfigurationKey(
                "audit.checkpointIntervalMs",
                .wholeNumber(value.checkpointInterval.wholeMilliseconds),
                "how often what is new is signed"
            ),
            ConfigurationKey(
                "audit.sink",
                .text(value.sink),
                "a second place for the audit: stdout, or file: and a path"
            ),
            ConfigurationKey(
                "audit.flushIntervalMs",
                .wholeNumber(value.flushInterval.wholeMilliseconds),
                "how long a record may wait to be written"
            ),
            ConfigurationKey(
                "audit.commitTimeoutMs",
                .wholeNumber(value.commitTimeout.wholeMilliseconds),
                "how long what needs its record first may wait for it"
            ),
            ConfigurationKey(
                "audit.spoolAfterMs",
                .wholeNumber(value.spoolAfter.wholeMilliseconds),
                "how long the store may hold records before they go to the spool"
            ),
            ConfigurationKey("audit.queueRecords", .wholeNumber(value.queueRecords), "records that may wait"),
            ConfigurationKey("audit.queueBytes", .wholeNumber(value.queueBytes), "bytes of records that may wait"),
            ConfigurationKey(
                "audit.spoolDir",
                .text(value.spoolDir),
                "where records wait while the store fails, relative to dataDir"
            ),
            ConfigurationKey("audit.spoolBytes", .wholeNumber(value.spoolBytes), "bytes of records that wait there"),
        ]
    }
}
