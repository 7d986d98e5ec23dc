import Testing

@testable import GatewayService

struct ConfigurationKeyTests {
    @Test(
        "A key's variable is its path in upper case, with words and levels apart",
        arguments: [
            ("dataDir", "GATEWAY_DATA_DIR"),
            ("eventLoops", "GATEWAY_EVENT_LOOPS"),
            ("masterKey", "GATEWAY_MASTER_KEY"),
            ("http.host", "GATEWAY_HTTP_HOST"),
            ("http.keepAliveTimeoutMs", "GATEWAY_HTTP_KEEP_ALIVE_TIMEOUT_MS"),
            ("http.tls.clientCaFile", "GATEWAY_HTTP_TLS_CLIENT_CA_FILE"),
            ("admin.token", "GATEWAY_ADMIN_TOKEN"),
            ("store.url", "GATEWAY_STORE_URL"),
            ("limits.redisUrl", "GATEWAY_LIMITS_REDIS_URL"),
            ("limits.defaults.deviceCollapsible", "GATEWAY_LIMITS_DEFAULTS_DEVICE_COLLAPSIBLE"),
            ("upstream.v1Endpoint", "GATEWAY_UPSTREAM_V1_ENDPOINT"),
            ("upstream.iidEndpoint", "GATEWAY_UPSTREAM_IID_ENDPOINT"),
            ("upstream.topicApi", "GATEWAY_UPSTREAM_TOPIC_API"),
            ("upstream.maxConnectionsPerLoop", "GATEWAY_UPSTREAM_MAX_CONNECTIONS_PER_LOOP"),
            ("audit.flushIntervalMs", "GATEWAY_AUDIT_FLUSH_INTERVAL_MS"),
        ]
    )
    func environmentName(path: String, name: String) {
        #expect(ConfigurationKey.variable(path) == name)
        #expect(ConfigurationTable.keysByPath[path] != nil)
    }

    @Test("No two keys share a variable")
    func variablesAreUnique() {
        let variables = ConfigurationTable.keys.flatMap(\.variables)
        #expect(Set(variables).count == variables.count)
    }

    @Test(
        "Defaults are those operators were promised",
        arguments: [
            ("dataDir", "/var/lib/fcm-gateway"),
            ("http.host", "0.0.0.0"), ("http.port", "8080"),
            ("admin.host", "127.0.0.1"), ("admin.port", "8081"),
            ("http.tls.certificateFile", ""), ("admin.tls.clientCaFile", ""),
            ("store.url", "sqlite:gateway.sqlite"), ("limits.redisUrl", ""),
            (
                "limits.defaults.device",
                #"[{"burst":60,"perS":60,"rate":180},{"burst":1000,"perS":3600,"rate":4000}]"#
            ),
            ("limits.defaults.deviceCollapsible", #"[{"burst":20,"perS":180,"rate":1}]"#),
            ("limits.defaults.topic", #"[{"burst":100,"perS":60,"rate":900}]"#),
            ("limits.defaults.tenant", #"[{"burst":9000,"perS":1,"rate":9000}]"#),
            ("upstream.legacyEndpoint", "https://fcm.googleapis.com"),
            ("upstream.v1Endpoint", "https://fcm.googleapis.com"),
            ("upstream.iidEndpoint", "https://iid.googleapis.com"),
            ("upstream.topicApi", "v1"),
            ("upstream.allowedTokenHosts", "oauth2.googleapis.com,accounts.google.com,www.googleapis.com"),
            ("upstream.allowPlainHTTP", ""),
            ("upstream.caFile", ""), ("upstream.timeoutMs", "10000"), ("upstream.deadlineMs", "20000"),
            ("upstream.connectTimeoutMs", "2000"), ("upstream.maxConnectionsPerLoop", "256"),
            ("http.keepAliveTimeoutMs", "75000"), ("http.headTimeoutMs", "5000"),
            ("http.bodyTimeoutMs", "10000"), ("http.writeStallTimeoutMs", "10000"), ("http.maxConnections", "16384"),
            ("http.maxInFlight", "1024"), ("http.maxBufferedBytes", "67108864"), ("http.maxLagMs", "4"),
            ("admin.keepAliveTimeoutMs", "75000"), ("admin.headTimeoutMs", "5000"),
            ("admin.bodyTimeoutMs", "10000"), ("admin.writeStallTimeoutMs", "10000"), ("admin.maxConnections", "256"),
            ("http.drainGraceMs", "5000"), ("http.shutdownTimeoutMs", "25000"),
            ("audit.mode", "bounded"), ("audit.retentionDays", "400"),
            ("audit.checkpointIntervalMs", "10000"), ("audit.sink", ""),
            ("audit.flushIntervalMs", "10"), ("audit.queueRecords", "10000"),
            ("audit.commitTimeoutMs", "2000"), ("audit.spoolAfterMs", "100"),
            ("audit.spoolDir", ""), ("audit.spoolBytes", "67108864"),
            ("log.level", "info"), ("log.format", "json"),
            ("masterKey", ""), ("admin.token", ""),
        ]
    )
    func defaults(path: String, value: String) throws {
        let rows = ConfigurationInput(file: String?.none, environment: [:]).describe()
        let row = try #require(rows.first { $0.key.path == path })
        #expect(row.value == value)
        #expect(row.source == .builtIn)
    }
}
