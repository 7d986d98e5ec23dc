import Testing

@testable import GatewayService

struct ConfigurationKeyTests {
    @Test(
        "A key's variable is its path in upper case, with underscores between words and levels",
        arguments: [
            ("dataDir", "GATEWAY_DATA_DIR"), ("eventLoops", "GATEWAY_EVENT_LOOPS"), ("masterKey", "GATEWAY_MASTER_KEY"),
            ("http.host", "GATEWAY_HTTP_HOST"), ("http.keepAliveTimeoutMs", "GATEWAY_HTTP_KEEP_ALIVE_TIMEOUT_MS"),
            ("http.tls.clientCaFile", "GATEWAY_HTTP_TLS_CLIENT_CA_FILE"), ("admin.token", "GATEWAY_ADMIN_TOKEN"),
            ("store.url", "GATEWAY_STORE_URL"), ("store.poolSize", "GATEWAY_STORE_POOL_SIZE"),
            ("store.password", "GATEWAY_STORE_PASSWORD"), ("limits.redisUrl", "GATEWAY_LIMITS_REDIS_URL"),
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
}
