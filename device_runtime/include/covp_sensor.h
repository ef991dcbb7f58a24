/* covp's SPI and I2C controllers with a sensor (peripherals/spi_sensor.py, i2c_sensor.py; a test
   compares the numbers). Their addresses are the platform's. */
#ifndef COVP_SENSOR_H
#define COVP_SENSOR_H

#include <stdint.h>

struct covp_spi_sensor {
    volatile uint32_t ctrl;
    volatile uint32_t status;
    volatile uint32_t divider;
    volatile uint32_t tx;
    const volatile uint32_t rx;
    volatile uint32_t select;
};

struct covp_i2c_sensor {
    volatile uint32_t ctrl;
    volatile uint32_t status;
    volatile uint32_t divider;
    volatile uint32_t tx;
    const volatile uint32_t rx;
    volatile uint32_t command;
};

/* CTRL and STATUS of both */
#define COVP_SENSOR_ENABLE 0x1u
#define COVP_SENSOR_DONE_INTERRUPT 0x2u
#define COVP_SENSOR_SENSOR_INTERRUPT 0x4u
#define COVP_SENSOR_BUSY 0x1u
#define COVP_SENSOR_DONE 0x2u
#define COVP_SENSOR_SENSOR 0x4u
#define COVP_I2C_NACK 0x8u

#define COVP_I2C_START 0x1u
#define COVP_I2C_WRITE 0x2u
#define COVP_I2C_READ 0x4u
#define COVP_I2C_STOP 0x8u

/* The sensor's registers, of 8 bits. */
#define COVP_SENSOR_WHO_AM_I 0x00u
#define COVP_SENSOR_CONTROL 0x01u
#define COVP_SENSOR_FLAGS 0x02u /* bit 0: ready, bit 1: overrun */
#define COVP_SENSOR_LEVEL 0x03u
#define COVP_SENSOR_WATERMARK 0x04u
#define COVP_SENSOR_CHANNELS 0x05u
#define COVP_SENSOR_RATE 0x06u
#define COVP_SENSOR_DATA 0x10u

/* Both wait for each byte. */
static inline uint8_t covp_spi_exchange(struct covp_spi_sensor *spi, uint32_t byte)
{
    spi->tx = byte;
    while (spi->status & COVP_SENSOR_BUSY) {
    }
    spi->status = COVP_SENSOR_DONE;
    return (uint8_t)spi->rx;
}

static inline void covp_spi_write(struct covp_spi_sensor *spi, uint32_t address, uint32_t value)
{
    spi->select = 1;
    covp_spi_exchange(spi, address);
    covp_spi_exchange(spi, value);
    spi->select = 0;
}

static inline void covp_spi_read(struct covp_spi_sensor *spi, uint32_t address, uint8_t *bytes,
                                 uint32_t count)
{
    spi->select = 1;
    covp_spi_exchange(spi, address | 0x80u);
    for (uint32_t i = 0; i < count; i++)
        bytes[i] = covp_spi_exchange(spi, 0);
    spi->select = 0;
}

/* A command; not 0: it was not acknowledged. */
static inline int covp_i2c_command(struct covp_i2c_sensor *i2c, uint32_t command)
{
    i2c->command = command;
    while (i2c->status & COVP_SENSOR_BUSY) {
    }
    i2c->status = COVP_SENSOR_DONE;
    return (i2c->status & COVP_I2C_NACK) != 0;
}

static inline int covp_i2c_send(struct covp_i2c_sensor *i2c, uint32_t byte, uint32_t conditions)
{
    i2c->tx = byte;
    return covp_i2c_command(i2c, COVP_I2C_WRITE | conditions);
}

/* 0, or not 0 where no sensor has that address on the bus. */
static inline int covp_i2c_write(struct covp_i2c_sensor *i2c, uint32_t sensor, uint32_t address,
                                 uint32_t value)
{
    int failed = covp_i2c_send(i2c, sensor << 1, COVP_I2C_START);
    failed |= covp_i2c_send(i2c, address, 0);
    failed |= covp_i2c_send(i2c, value, COVP_I2C_STOP);
    return failed;
}

static inline int covp_i2c_read(struct covp_i2c_sensor *i2c, uint32_t sensor, uint32_t address,
                                uint8_t *bytes, uint32_t count)
{
    int failed = covp_i2c_send(i2c, sensor << 1, COVP_I2C_START);
    failed |= covp_i2c_send(i2c, address, 0);
    failed |= covp_i2c_send(i2c, sensor << 1 | 1u, COVP_I2C_START);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t stop = i + 1 == count ? COVP_I2C_STOP : 0;
        covp_i2c_command(i2c, COVP_I2C_READ | stop);
        bytes[i] = (uint8_t)i2c->rx;
    }
    return failed;
}

#endif
